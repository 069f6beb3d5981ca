package cli

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/cli/static"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

var updateStatic = flag.Bool("update", false, "write the texts of package static")

// texts is the path of the folder with the texts, relative to this package.
const texts = "static/text"

func TestStaticTextsAreWhatTheCommandsPrint(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("package static answers on Linux only")
	}
	want := map[string][]string{} // file → arguments
	root := newRoot(Stdio{Out: os.Stdout, Err: os.Stderr})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	collect(root, "koboshi", nil, want)
	for _, shell := range []string{"bash", "fish", "powershell", "zsh"} {
		want["script_"+shell] = []string{"completion", shell}
	}
	if *updateStatic {
		writeTexts(t, want)
		return
	}
	for file, args := range want {
		_, printed, _ := run(t, args...)
		text, ok := static.Text(args)
		if diff := cmp.Diff(printed, text); !ok || diff != "" {
			t.Errorf("%s differs from the output of koboshi %q; to update the file, run go test ./internal/cli -run TestStaticTexts -update\n%s", file, args, diff)
		}
	}
	entries, err := os.ReadDir(texts)
	if err != nil || len(entries) != len(want) {
		t.Errorf("%s holds %d files, want %d (%v)", texts, len(entries), len(want), err)
	}
}

// collect adds the arguments that print the help of a command and of its subcommands. It
// skips kubectl, whose help comes from upstream.
func collect(cmd *cobra.Command, file string, verbs []string, into map[string][]string) {
	if cmd.Hidden || cmd.Name() == "kubectl" || cmd.Name() == "help" {
		return
	}
	into[file] = append(verbs[:len(verbs):len(verbs)], "--help")
	for _, sub := range cmd.Commands() {
		collect(sub, file+"_"+sub.Name(), append(verbs[:len(verbs):len(verbs)], sub.Name()), into)
	}
}

func writeTexts(t *testing.T, want map[string][]string) {
	t.Helper()
	if err := os.RemoveAll(texts); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(texts, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, args := range want {
		_, printed, _ := run(t, args...)
		if err := os.WriteFile(filepath.Join(texts, file), []byte(printed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStaticVersionIsThatOfTheCommand(t *testing.T) {
	_, printed, _ := run(t, "version")
	text, _ := static.Text([]string{"version"})
	if printed != text || static.Kubernetes != "v"+kubeversion.Version {
		t.Errorf("package static prints %q, and the command prints %q", text, printed)
	}
	// runtime/debug reads the same build information, but later.
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" && static.Koboshi() != build.Main.Version {
		t.Errorf("the version is %q, and the build information has %q", static.Koboshi(), build.Main.Version)
	}
}

// The build information of a test program has no modules, so a test in package conformance compares
// their versions.
func TestTheVersionInJSONIsThatOfTheCommand(t *testing.T) {
	_, printed, _ := run(t, "version", "-o", "json")
	text, _ := static.Text([]string{"version", "-o", "json"})
	if printed != text {
		t.Errorf("package static prints %q, and the command prints %q", text, printed)
	}
	var got struct{ Koboshi, Kubernetes, Go, Platform string }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if got.Koboshi != static.Koboshi() || got.Kubernetes != static.Kubernetes || got.Go != runtime.Version() || got.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("the versions are %+v", got)
	}
}

func TestOnlyRequestsForHelpAndTheVersionAreAnsweredStatically(t *testing.T) {
	for _, args := range [][]string{{"up"}, {"help", "frobnicate"}, {"up", "--nodes", "--help"}, {"version", "-o", "yaml"}, {"version", "-o"}, {"kubectl", "--help"}, {"../koboshi", "-h"}, {"completion", "tcsh"}} {
		if text, ok := static.Text(args); ok {
			t.Errorf("koboshi %q is answered with %q", args, text)
		}
	}
}
