package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/manifest/makefile"
)

// projectCalls returns the calls of generators in the project's Makefile. If there are none, it
// returns the calls of controller-gen in kubebuilder's Makefile.
func projectCalls(dir string) ([]Call, []string, error) {
	file, err := makefile.Read(dir, os.Environ())
	if err != nil {
		return nil, nil, err
	}
	if file == nil {
		return defaultCalls(dir)
	}
	f := &finder{file: file, seen: map[*makefile.Rule]bool{}}
	if err := f.find(); err != nil {
		return nil, nil, err
	}
	if len(f.calls) == 0 {
		calls, notes, err := defaultCalls(dir)
		if f.callsUs {
			return calls, notes, err
		}
		note := file.Paths()[0] + " does not call controller-gen; the options are those of kubebuilder's Makefile"
		return calls, append([]string{note}, notes...), err
	}
	return f.calls, append(f.versionNote(), f.notRun()...), nil
}

// finder finds the calls of generators in a Makefile.
type finder struct {
	file  *makefile.File
	seen  map[*makefile.Rule]bool
	calls []Call
	// others lists the other commands in the recipes that call controller-gen.
	others []string
	// versions lists the versions of controller-tools that the project pins, and clientVersions
	// lists the versions of k8s.io/code-generator.
	versions, clientVersions []string
	// callsUs means that a recipe calls koboshi generate without arguments.
	callsUs bool
}

// find reads the rules that generate. Projects that were scaffolded by kubebuilder have the
// targets manifests and generate.
func (f *finder) find() error {
	for _, target := range []string{"manifests", "generate"} {
		if err := f.rules(f.file.Reached(target)); err != nil {
			return err
		}
	}
	if len(f.calls) > 0 {
		return nil
	}
	return f.rules(f.file.Rules)
}

func (f *finder) rules(rules []*makefile.Rule) error {
	for _, rule := range rules {
		if f.seen[rule] {
			continue
		}
		f.seen[rule] = true
		if err := f.rule(rule); err != nil {
			return err
		}
	}
	return nil
}

// rule reads a recipe.
func (f *finder) rule(rule *makefile.Rule) error {
	calls := len(f.calls)
	var others []string
	for _, line := range rule.Recipe {
		other, err := f.line(rule, line)
		if err != nil {
			return err
		}
		others = append(others, other...)
	}
	if len(f.calls) > calls {
		f.others = append(f.others, others...)
	}
	return nil
}

// mentions matches a line that may call a generator.
var mentions = regexp.MustCompile(`(?i)(controller|client|lister|informer)[-_]?gen`)

// line reads a line of a recipe. It returns the other commands of the line, which koboshi generate
// does not run.
func (f *finder) line(rule *makefile.Rule, line makefile.Line) (others []string, err error) {
	call := Call{Dir: f.file.Dir, At: Position{File: line.Path, Line: line.Line}}
	text, err := f.file.Expand(line.Text, rule)
	if err != nil {
		if startsWithCall(line.Text) {
			return nil, atCall(call, fmt.Errorf("%w; set the variable in the environment, or pass controller-gen's arguments to koboshi generate", err))
		}
		return []string{f.other(line, firstWords(line.Text))}, nil
	}
	commands, err := makefile.Split(text)
	if err != nil {
		if mentions.MatchString(text) {
			return nil, atCall(call, err)
		}
		return []string{f.other(line, firstWords(line.Text))}, nil
	}
	for _, command := range commands {
		other, err := f.command(&call, command)
		if err != nil {
			return nil, err
		}
		if other != "" {
			others = append(others, f.other(line, other))
		}
	}
	return others, nil
}

// startsWithCall reports whether an unexpanded line is a call of controller-gen with options.
func startsWithCall(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, "@-+ \t"), " ")
	return mentions.MatchString(first) && !strings.Contains(first, "call") && strings.Contains(rest, "paths=")
}

func firstWords(text string) string {
	words := strings.Fields(strings.TrimLeft(text, "@-+ \t"))
	return strings.Join(words[:min(len(words), 3)], " ")
}

func (f *finder) other(line makefile.Line, command string) string {
	return fmt.Sprintf("%s (%s)", strings.ReplaceAll(command, f.file.Dir+"/", ""), line.Position)
}

// harmless lists commands that generate nothing.
var harmless = []string{"echo", "printf", "mkdir", "true", ":", "test", "[", "set", "exit"}

// command reads a simple command. The command cd changes the folder of the call.
func (f *finder) command(call *Call, command makefile.Command) (other string, err error) {
	args, isCall := callArguments(command)
	program, clientArgs := clientCall(command)
	switch {
	case program != "":
		f.clientVersions = append(f.clientVersions, pinnedBy(command.Args, f.file.Dir, clientsModule)...)
		call.Program = program
		err := f.add(*call, command, clientArgs)
		call.Program = ""
		return "", err
	case path.Base(command.Args[0]) == "koboshi" && len(command.Args) > 1 && command.Args[1] == "generate":
		return "", f.addOurs(*call, command)
	case isCall && len(args) == 0:
		return "", nil // a call that prints the version
	case isCall:
		f.versions = append(f.versions, pinnedBy(command.Args, f.file.Dir, toolsModule)...)
		return "", f.add(*call, command, args)
	case command.Args[0] == "cd" && len(command.Args) == 2:
		call.Dir = inDir(call.Dir, command.Args[1])
		return "", nil
	case command.Args[0] == "make" && f.submake(command.Args[1:]):
		return "", f.rules(f.file.Reached(command.Args[1:]...))
	case slices.Contains(harmless, command.Args[0]):
		return "", nil
	}
	return strings.Join(command.Args[:min(len(command.Args), 3)], " "), nil
}

// add adds a call.
func (f *finder) add(call Call, command makefile.Command, args []string) error {
	call.Args = slices.DeleteFunc(args, func(arg string) bool { return arg == "" })
	call.Env = slices.Clone(command.Env)
	switch {
	case command.Dynamic:
		return atCall(call, fmt.Errorf("the shell computes arguments of %s, or calls it under a condition; "+
			"pass controller-gen's arguments to koboshi generate", cmp.Or(call.Program, "controller-gen")))
	case command.Redirected && slices.ContainsFunc(args, func(arg string) bool { return strings.HasSuffix(arg, "stdout") }):
		return atCall(call, errors.New("the output of controller-gen is redirected; use an option such as output:dir=config/crd"))
	}
	f.calls = append(f.calls, call)
	return nil
}

// addOurs adds a call of koboshi generate, whose arguments are those of controller-gen.
func (f *finder) addOurs(call Call, command makefile.Command) error {
	args := slices.DeleteFunc(slices.Clone(command.Args[2:]), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if len(args) == 0 {
		f.callsUs = true
		return nil
	}
	return f.add(call, command, args)
}

// submake reports whether all arguments of make are targets of the same Makefile.
func (f *finder) submake(args []string) bool {
	return len(args) > 0 && !slices.ContainsFunc(args, func(arg string) bool { return !f.file.Has(arg) })
}

// program matches the name of controller-gen, to which projects append a version.
var program = regexp.MustCompile(`^controller-gen([-_]?v?[0-9].*)?(@.*)?$`)

// wrappers lists commands that run the command in their arguments.
var wrappers = []string{"env", "exec", "time", "command", "nice"}

// callArguments returns the arguments of controller-gen if the command calls it. A call that
// only prints something, such as the version, has no arguments.
func callArguments(command makefile.Command) (args []string, ok bool) {
	words := programAndArguments(command)
	if len(words) == 0 || !program.MatchString(path.Base(strings.TrimSuffix(words[0], "/"))) {
		return nil, false
	}
	args = words[1:]
	generates := slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, ":")
		_, known := generators[name]
		return known || strings.HasPrefix(arg, "paths=")
	})
	if !generates {
		return nil, true
	}
	return slices.Clone(args), true
}

// programAndArguments returns the program that a command runs, and its arguments.
func programAndArguments(command makefile.Command) []string {
	words := command.Args
	for len(words) > 1 && (slices.Contains(wrappers, words[0]) || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	if path.Base(words[0]) == "go" && len(words) > 1 && (words[1] == "run" || words[1] == "tool") {
		words = words[2:]
		for len(words) > 0 && strings.HasPrefix(words[0], "-") {
			words = words[1:]
		}
	}
	return words
}

// clientProgram matches the names of the client generators, to which projects append a version.
var clientProgram = regexp.MustCompile(`^(client|lister|informer)-gen([-_]v?[0-9].*)?$`)

// clientCall returns the name and the arguments of a generator of k8s.io/code-generator if the
// command calls it.
func clientCall(command makefile.Command) (program string, args []string) {
	words := programAndArguments(command)
	if len(words) < 2 {
		return "", nil
	}
	program, _, _ = strings.Cut(path.Base(words[0]), "@")
	if !clientProgram.MatchString(program) {
		return "", nil
	}
	return program, slices.Clone(words[1:])
}

// generatorOf returns the name of the generator without its version.
func generatorOf(program string) string { return clientProgram.FindStringSubmatch(program)[1] + "-gen" }

func (f *finder) notRun() []string {
	if len(f.others) == 0 {
		return nil
	}
	const most = 5
	note := "not run: " + strings.Join(f.others[:min(len(f.others), most)], ", ")
	if len(f.others) > most {
		note += fmt.Sprintf(" and %d more commands", len(f.others)-most)
	}
	return []string{note}
}

// versionNote returns a note for each module of generators if the project pins another version of
// it.
func (f *finder) versionNote() (notes []string) {
	for _, name := range []string{"CONTROLLER_TOOLS_VERSION", "CONTROLLER_GEN_VERSION", "CONTROLLER_GEN_VER"} {
		f.versions = append(f.versions, f.variable(name)...)
	}
	f.clientVersions = append(f.clientVersions, f.variable("CODE_GENERATOR_VERSION")...)
	for _, m := range []struct {
		name, ours string
		pinned     []string
	}{{"controller-gen", ToolsVersion, f.versions}, {clientsModule, ClientsVersion, f.clientVersions}} {
		other := slices.IndexFunc(m.pinned, func(v string) bool { return strings.HasPrefix(v, "v") && v != m.ours })
		if other >= 0 {
			notes = append(notes, fmt.Sprintf("the project uses %s %s; koboshi generates what %[1]s %[3]s does", m.name, m.pinned[other], m.ours))
		}
	}
	return notes
}

// variable returns the value of a variable if it is set.
func (f *finder) variable(name string) []string {
	if value, err := f.file.Variable(name); err == nil && value != "" {
		return []string{value}
	}
	return nil
}

// The modules of the generators.
const (
	toolsModule   = "sigs.k8s.io/controller-tools"
	clientsModule = "k8s.io/code-generator"
)

// requiredVersion returns the version of a module that a go.mod requires, or "".
func requiredVersion(goMod []byte, module string) string {
	line := regexp.MustCompile(`(?m)^\s*(?:require\s+)?` + regexp.QuoteMeta(module) + `\s+(v\S+)`)
	if match := line.FindSubmatch(goMod); match != nil {
		return string(match[1])
	}
	return ""
}

// pinnedBy returns the version of a module that a call through the go command runs.
func pinnedBy(args []string, dir, module string) []string {
	file := ""
	for i, arg := range args {
		if program, version, ok := strings.Cut(arg, "@"); ok && strings.HasPrefix(program, module+"/") {
			return []string{version}
		}
		if name, ok := strings.CutPrefix(arg, "-modfile="); ok {
			file = name
		}
		if arg == "tool" && i == 1 && file == "" {
			file = "go.mod"
		}
	}
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(inDir(dir, filepath.FromSlash(file)))
	if err != nil {
		return nil
	}
	if version := requiredVersion(data, module); version != "" {
		return []string{version}
	}
	return nil
}
