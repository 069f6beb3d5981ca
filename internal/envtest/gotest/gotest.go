// Package gotest parses the arguments of go test, for a program that runs go test and
// accepts its own flags among go's flags.
//
// The package follows cmd/go/internal/test of Go 1.26: a command line has one uninterrupted list of
// packages, with flags of go before and after it. A command line may also have flags for the test
// binary; the argument after such a flag may or may not be the value of the flag.
package gotest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// everything is the package list used if no package is named.
const everything = "./..."

// These flags of go take no value, or take one only with "=".
var (
	plainBuild = names("a asan buildvcs c cover json linkshared modcacherw msan n race trimpath work x")
	plainTest  = names("artifacts benchmem failfast fullpath short v")
)

// These flags of go take a value. Flags of the test binary have a second name, which
// starts with "test.".
var (
	valuedBuild = names("C asmflags buildmode compiler covermode coverpkg debug-actiongraph debug-runtime-trace " +
		"debug-trace exec gccgoflags gcflags installsuffix ldflags mod modfile o overlay p pgo pkgdir tags toolexec vet")
	valuedTest = names("bench benchtime blockprofile blockprofilerate count coverprofile cpu cpuprofile fuzz " +
		"fuzzminimizetime fuzztime list memprofile memprofilerate mutexprofile mutexprofilefraction outputdir " +
		"parallel run shuffle skip timeout trace")
)

func names(list string) []string { return strings.Fields(list) }

// A CommandLine is a parsed command line.
type CommandLine struct {
	// Args are the arguments for go test, in order and without our own flags. They
	// include ./... if no package was named.
	Args []string
	// Own holds the values of our own flags, in order.
	Own map[string][]string
	// Command is the program to run in place of go test, with its arguments. Command is nil if the
	// command line names no such program. If Command is not nil, Args is empty.
	Command []string
	// Help reports whether help was requested. If Help is true, the rest of the command line was
	// not parsed.
	Help bool
}

// Read parses a command line. The flags named in own have two dashes and a value. These
// flags may appear anywhere except among the arguments of the test binary. A "--" that
// precedes all arguments for go starts a command to run in place of go test; any other "--"
// is passed to go.
func Read(args []string, own ...string) (CommandLine, error) {
	r := reader{args: args, own: own, line: CommandLine{Own: map[string][]string{}}}
	for len(r.args) > 0 && !r.line.Help {
		if err := r.next(); err != nil {
			return CommandLine{}, err
		}
	}
	if !r.named && r.line.Command == nil {
		// The package goes to the front, where it cannot be mistaken for a flag's value;
		// only -C must precede the package.
		r.line.Args = slices.Insert(r.line.Args, chdir(r.line.Args), everything)
	}
	return r.line, nil
}

// A reader holds the state of Read.
type reader struct {
	args []string // not parsed yet
	own  []string
	line CommandLine

	named     bool // a package was named
	inList    bool // the last argument was a package
	listEnded bool // a flag ended the list, or a flag unknown to go came first
	maybe     bool // the last argument was a flag, and the next one may be its value
}

// next parses one argument, with its value if it has one.
func (r *reader) next() error {
	arg := r.args[0]
	name, _, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
	switch {
	case arg == "--" && len(r.line.Args) == 0:
		return r.command()
	case arg == "--", arg == "-args", arg == "--args":
		r.pass(len(r.args))
	case strings.HasPrefix(arg, "--") && slices.Contains(r.own, name):
		return r.ours(name)
	case slices.Contains([]string{"-h", "--h", "-help", "--help", "-?", "--?"}, arg):
		r.line.Help = true
	case !isFlag(arg):
		r.word()
	default:
		r.flag(name, hasValue)
	}
	return nil
}

// command takes all arguments after "--" as a command. Before the version that introduced commands,
// "--" only ended our own flags, so arguments that can only be meant for go test are refused.
func (r *reader) command() error {
	r.line.Command, r.args = r.args[1:], nil
	if len(r.line.Command) == 0 {
		return errors.New("there is no command after --; write one, or omit -- to run go test")
	}
	if word := r.line.Command[0]; isFlag(word) || word == "--" || word == "." || strings.HasSuffix(word, "...") {
		return fmt.Errorf("%q after -- is not a command; to pass it to go test, omit --", word)
	}
	return nil
}

// pass hands the next n arguments to go test.
func (r *reader) pass(n int) {
	n = min(n, len(r.args))
	r.line.Args = append(r.line.Args, r.args[:n]...)
	r.args = r.args[n:]
}

// ours parses one of our own flags, which may even appear among the packages.
func (r *reader) ours(name string) error {
	_, value, hasValue := strings.Cut(r.args[0], "=")
	r.args = r.args[1:]
	if !hasValue {
		if len(r.args) == 0 {
			return fmt.Errorf("flag needs an argument: --%s", name)
		}
		value, r.args = r.args[0], r.args[1:]
	}
	r.line.Own[name] = append(r.line.Own[name], value)
	return nil
}

// word parses an argument that is not a flag: a package, or an argument of the test binary.
func (r *reader) word() {
	switch {
	case !r.listEnded:
		r.named, r.inList = true, true
		r.pass(1)
	case r.maybe:
		r.maybe = false
		r.pass(1)
	default:
		// This word cannot be a flag's value, so go stops parsing here.
		r.pass(len(r.args))
	}
}

func (r *reader) flag(name string, hasValue bool) {
	r.listEnded = r.listEnded || r.inList
	r.inList, r.maybe = false, false
	switch {
	case takesValue(name) && !hasValue:
		r.pass(2)
	case takesValue(name) || isPlain(name):
		r.pass(1)
	default:
		// This is a flag of the test binary. From here on, words may be values of the test
		// binary's flags.
		r.listEnded, r.maybe = true, !hasValue
		r.pass(1)
	}
}

func takesValue(name string) bool {
	return slices.Contains(valuedBuild, name) || slices.Contains(valuedTest, strings.TrimPrefix(name, "test."))
}

func isPlain(name string) bool {
	return slices.Contains(plainBuild, name) || slices.Contains(plainTest, strings.TrimPrefix(name, "test."))
}

// isFlag reports whether Go's package flag would treat the argument as a flag.
func isFlag(arg string) bool {
	arg, found := strings.CutPrefix(arg, "-")
	arg = strings.TrimPrefix(arg, "-")
	return found && arg != "" && arg[0] != '-' && arg[0] != '='
}

// chdir returns the number of arguments that a leading -C takes up.
func chdir(args []string) int {
	if len(args) == 0 {
		return 0
	}
	switch name, _, hasValue := strings.Cut(strings.TrimPrefix(args[0], "-"), "="); {
	case name != "C" && name != "-C" || !isFlag(args[0]):
		return 0
	case hasValue:
		return 1
	}
	return min(2, len(args))
}
