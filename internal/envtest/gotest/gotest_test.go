package gotest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsNotOursGoesToGoTestInOrder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ given, want string }{
		// Without packages.
		{"", "./..."},
		{"-run TestX", "./... -run TestX"},
		{"-run=TestX", "./... -run=TestX"},
		{"--run TestX -v", "./... --run TestX -v"},
		{"-test.run TestX", "./... -test.run TestX"},
		{"-timeout 5m -count 1", "./... -timeout 5m -count 1"},
		{"-v -race -tags a,b", "./... -v -race -tags a,b"},
		{"-v=false", "./... -v=false"},
		{"-buildvcs -json", "./... -buildvcs -json"},
		{"-run", "./... -run"}, // go says that the value is missing
		{"-args -run X ./pkg", "./... -args -run X ./pkg"},
		{"--args x", "./... --args x"},
		{"-v -- x", "./... -v -- x"},
		{"-ginkgo.focus=x -v", "./... -ginkgo.focus=x -v"},
		{"-ginkgo.focus x -v", "./... -ginkgo.focus x -v"},
		{"-ginkgo.v ./pkg", "./... -ginkgo.v ./pkg"}, // ./pkg may be a value
		{"-test.race x", "./... -test.race x"},       // not a flag of go
		{"-C dir", "-C dir ./..."},
		{"-C=dir -v", "-C=dir ./... -v"},
		{"--C dir -run X", "--C dir ./... -run X"},
		{"-C", "-C ./..."},
		// With packages.
		{"./pkg", "./pkg"},
		{".", "."},
		{"-run TestX -v ./internal/...", "-run TestX -v ./internal/..."},
		{"./a ./b -run X", "./a ./b -run X"},
		{"a_test.go b.go -v", "a_test.go b.go -v"},
		{"-v example.com/a -ginkgo.v -ginkgo.focus x -count 1", "-v example.com/a -ginkgo.v -ginkgo.focus x -count 1"},
		{"-C dir ./a", "-C dir ./a"},
		{"-exec xprog ./a", "-exec xprog ./a"},
		{"-p 2 -o out -c ./a", "-p 2 -o out -c ./a"},
		{"./a -args -h", "./a -args -h"},
		// Our own flags are removed.
		{"--controllers=gc", "./..."},
		{"--controllers gc", "./..."},
		{"--controllers=gc ./a", "./a"},
		{"-run X --controllers=gc -v", "./... -run X -v"},
		{"./a --controllers gc ./b", "./a ./b"},
		{"./a -v --controllers=gc -run X", "./a -v -run X"},
		{"-ginkgo.v --controllers=gc", "./... -ginkgo.v"},
		{"./a -ginkgo.focus x --controllers=gc -v", "./a -ginkgo.focus x -v"},
		{"--controllers=gc -C dir", "-C dir ./..."},
	} {
		line, err := Read(strings.Fields(test.given), "controllers")
		if err != nil {
			t.Errorf("%q: %v", test.given, err)
			continue
		}
		if got := strings.Join(line.Args, " "); got != test.want || line.Help {
			t.Errorf("%q:\ngot  %q (help: %t)\nwant %q", test.given, got, line.Help, test.want)
		}
		var own []string
		if strings.Contains(test.given, "--controllers") {
			own = []string{"gc"}
		}
		if diff := cmp.Diff(own, line.Own["controllers"]); diff != "" {
			t.Errorf("%q: --controllers (-want +got):\n%s", test.given, diff)
		}
	}
}

func TestWhatOnlyLooksLikeOursIsGoTests(t *testing.T) {
	t.Parallel()
	for _, given := range []string{
		"./a -run --controllers=gc",
		"./a -controllers=gc",
		"./a --controllersx=gc",
		"./a -args --controllers=gc",
		"./a -v -- --controllers=gc",
		"./a -v b --controllers=gc", // all arguments after b belong to the test binary
		"./a -run --help",
		"./a -args --help",
		"./a -v b --help",
	} {
		line, err := Read(strings.Fields(given), "controllers")
		if got := strings.Join(line.Args, " "); err != nil || got != given || len(line.Own) > 0 || line.Help {
			t.Errorf("%q: go test gets %q, our own flags are %q, help: %t (%v)", given, got, line.Own, line.Help, err)
		}
	}
}

func TestALeadingDoubleDashStartsACommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		given string
		want  []string
		own   []string
	}{
		{"-- pytest", []string{"pytest"}, nil},
		{"-- kubectl kuttl test --start-control-plane -h", []string{"kubectl", "kuttl", "test", "--start-control-plane", "-h"}, nil},
		{"-- ./run.sh -- x --controllers=job", []string{"./run.sh", "--", "x", "--controllers=job"}, nil},
		{"--controllers=gc -- go test ./...", []string{"go", "test", "./..."}, []string{"gc"}},
		{"--controllers gc -- env", []string{"env"}, []string{"gc"}},
	} {
		line, err := Read(strings.Fields(test.given), "controllers")
		if err != nil || line.Help || len(line.Args) > 0 {
			t.Errorf("%q: go test gets %q, help: %t (%v)", test.given, line.Args, line.Help, err)
		}
		if diff := cmp.Diff(test.want, line.Command); diff != "" {
			t.Errorf("%q: the command (-want +got):\n%s", test.given, diff)
		}
		if diff := cmp.Diff(test.own, line.Own["controllers"]); diff != "" {
			t.Errorf("%q: --controllers (-want +got):\n%s", test.given, diff)
		}
	}
}

func TestTheOldMeaningOfALeadingDoubleDashIsRefused(t *testing.T) {
	t.Parallel()
	for given, word := range map[string]string{
		"-- -v":                    "-v",
		"-- -args x":               "-args",
		"-- ./... -run X":          "./...",
		"-- ./internal/... -v":     "./internal/...",
		"-- .":                     ".",
		"--controllers=gc -- -- x": "--",
	} {
		_, err := Read(strings.Fields(given), "controllers")
		want := `"` + word + `" after -- is not a command; to pass it to go test, omit --`
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", given, err, want)
		}
	}
	if _, err := Read([]string{"--controllers=gc", "--"}, "controllers"); err == nil || !strings.HasPrefix(err.Error(), "there is no command after --") {
		t.Errorf("nothing after --: %v", err)
	}
}

func TestOwnFlagsAddUpAndNeedAValue(t *testing.T) {
	t.Parallel()
	line, err := Read([]string{"--controllers=a,b", "-v", "--controllers", "c", "--controllers="}, "controllers")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a,b", "c", ""}, line.Own["controllers"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if line, err := Read([]string{"-v", "--controllers"}, "controllers"); err == nil || err.Error() != "flag needs an argument: --controllers" {
		t.Errorf("%+v (%v)", line, err)
	}
}

func TestHelpIsAskedForInAllOfGosWays(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"-h", "--h", "-help", "--help", "-?", "-v --help", "./a -h", "--controllers=gc --help", "--help --controllers"} {
		if line, err := Read(strings.Fields(given), "controllers"); err != nil || !line.Help {
			t.Errorf("%q is not read as a request for help (%v)", given, err)
		}
	}
}

// The tables of go's flags must match the Go version that runs the tests. go help lists
// each flag at the start of a line after one tab, followed by the name of its value if it
// takes one.
func TestEveryFlagThatGoDocumentsIsKnown(t *testing.T) {
	t.Parallel()
	listed := regexp.MustCompile(`(?m)^\t-([A-Za-z]+)( \S.*)?$`)
	found := 0
	for _, topic := range []string{"build", "test", "testflag"} {
		text, err := exec.CommandContext(t.Context(), "go", "help", topic).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range listed.FindAllStringSubmatch(string(text), -1) {
			name, valued := match[1], match[2] != ""
			if name == "args" {
				continue
			}
			found++
			if takesValue(name) != valued || isPlain(name) == valued {
				t.Errorf("go help %s: -%s%s; here it takes a value: %t, takes none: %t", topic, name, match[2], takesValue(name), isPlain(name))
			}
		}
	}
	if found < 60 {
		t.Errorf("go help lists only %d flags; the pattern no longer matches it", found)
	}
}

// go test itself is the authority on which packages it tests, and which arguments the
// test binary gets.
func TestGoTestUnderstandsTheCommandLineAsWeDo(t *testing.T) {
	t.Parallel()
	dir := module(t)
	all := []string{"example.com/m", "example.com/m/sub"}
	for _, test := range []struct {
		given    string
		packages []string
		args     []string
	}{
		{"-run TestArgs", all, nil},
		{"-v -timeout 1m --controllers=gc", all, nil},
		{"-run TestArgs --controllers=gc ./sub -count 1", all[1:], nil},
		{"-args -own x ./sub", all, []string{"./sub"}},
		{"-own x", all, nil},
		{"-own x ./sub", all, []string{"./sub"}},
		{"./sub -own x", all[1:], nil},
		{"-v -- x", all, []string{"x"}},
		{"-C sub -v", all[1:], nil},
	} {
		line, err := Read(strings.Fields(test.given), "controllers")
		if err != nil {
			t.Fatal(err)
		}
		// go test requires -C to come first, so -json goes after it.
		at := chdir(line.Args)
		run := exec.CommandContext(t.Context(), "go", append([]string{"test"}, slices.Insert(slices.Clone(line.Args), at, "-json")...)...)
		run.Dir = dir
		run.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("go test %q: %v\n%s", line.Args, err, out)
			continue
		}
		packages, args := ran(t, out)
		if diff := cmp.Diff(test.packages, packages); diff != "" {
			t.Errorf("%q: packages (-want +got):\n%s", test.given, diff)
		}
		for _, got := range args {
			if diff := cmp.Diff(test.args, got); diff != "" {
				t.Errorf("%q: arguments of the test binary (-want +got):\n%s", test.given, diff)
			}
		}
		if len(args) != len(packages) {
			t.Errorf("%q: %d of %d test binaries printed their arguments:\n%s", test.given, len(args), len(packages), out)
		}
	}
}

// module makes a module of two packages whose tests print their arguments.
func module(t *testing.T) string {
	t.Helper()
	const source = `package m

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var _ = flag.String("own", "", "")

func TestArgs(t *testing.T) {
	line, err := json.Marshal(flag.Args())
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("\nargs:" + string(line) + "\n")
}
`
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", "m_test.go": source, "sub/m_test.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ran reads the output of go test -json.
func ran(t *testing.T, out []byte) (packages []string, args [][]string) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var event struct{ Action, Package, Output string }
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		if !slices.Contains(packages, event.Package) && event.Package != "" {
			packages = append(packages, event.Package)
		}
		if text, ok := strings.CutPrefix(event.Output, "args:"); ok {
			var list []string
			if err := json.Unmarshal([]byte(text), &list); err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				list = nil
			}
			args = append(args, list)
		}
	}
	slices.Sort(packages)
	return packages, args
}
