package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/forwarding"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// parseUp returns the options with which koboshi up would start a plane.
func parseUp(args ...string) (controlplane.Options, error) {
	var f upFlags
	fs := pflag.NewFlagSet("up", pflag.ContinueOnError)
	f.register(fs)
	if err := fs.Parse(args); err != nil {
		return controlplane.Options{}, err
	}
	return f.options(fs.Changed)
}

// configFile writes a file for --config.
func configFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "koboshi.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestProgramsComeFromFlagsAndThenFromTheFile(t *testing.T) {
	file := configFile(t, "run: [{image: web, path: /bin/ls, args: [-l]}, {image: job, path: /bin/sh}]")
	o, err := parseUp("--config", file, "--run=db=/bin/sh", "--run", "web=/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	want := programs.Set{
		{Image: "db", Path: "/bin/sh"},
		{Image: "web", Path: "/bin/sh"},
		{Image: "web", Path: "/bin/ls", Args: []string{"-l"}},
		{Image: "job", Path: "/bin/sh"},
	}
	if diff := cmp.Diff(want, o.Programs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if web, _ := o.Programs.Lookup("web"); web.Path != "/bin/sh" {
		t.Errorf("image web is %s; --run does not take precedence over the file", web.Path)
	}
}

func TestWithoutFlagsAllPodsAreSimulated(t *testing.T) {
	if o, err := parseUp(); err != nil || len(o.Programs) != 0 {
		t.Errorf("programs %v, %v", o.Programs, err)
	}
}

func TestProgramsThatCannotRunAreRefused(t *testing.T) {
	file := configFile(t, "run:\n- image: web\n  file: /bin/sh\n")
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"--run=web"}, `--run: "web" is not of the form IMAGE=PATH; an example is web=./bin/web`},
		{[]string{"--run=web=/missing"}, "--run: image web: /missing does not exist; build the program first, or correct the path"},
		{[]string{"--run=web=/bin/sh", "--run=docker.io/library/web=/bin/ls"}, "has two programs, /bin/sh and /bin/ls; remove one"},
		{[]string{"--config=/missing"}, "--config: reading the programs: open /missing: no such file or directory; correct the path"},
		{[]string{"--config=" + file}, `--config: ` + file + `: line 3: unknown field "file"; use one of image, path, args, workingDir, env, user`},
		{[]string{"--run=web=/bin/sh", "--profile=api"}, "profile api has none; add --controllers=scheduler, or choose another --profile"},
		{[]string{"--run=web=/bin/sh", "--controllers=-kube-scheduler"}, "profile full has none; add --controllers=scheduler, or choose another --profile"},
	} {
		_, err := parseUp(test.args...)
		if err == nil || !errors.As(err, &usageError{}) || !strings.HasSuffix(err.Error(), test.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("up %q:\ngot  %v\nwant … %s", test.args, err, test.says)
		}
	}
	if _, err := parseUp("--run=web=/bin/sh", "--profile=gc", "--controllers=scheduler"); err != nil {
		t.Errorf("with a scheduler: %v", err)
	}
}

func TestAddressesArePrintedOnceThePlaneIsReady(t *testing.T) {
	var out bytes.Buffer
	a := &addresses{out: &out}
	a.tell(forwarding.Address{Namespace: "default", Service: "web", URL: "http://127.0.0.1:1"})
	if out.Len() > 0 {
		t.Errorf("before the plane is ready: %q", &out)
	}
	a.release()
	a.tell(forwarding.Address{Namespace: "default", Service: "db", URL: "127.0.0.1:2"})
	want := "service default/web  http://127.0.0.1:1\nservice default/db  127.0.0.1:2\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThePlaneSaysWhenProgramsCannotRun(t *testing.T) {
	o := controlplane.Options{Nodes: 1, Programs: programs.Set{{Image: "web", Path: "/bin/sh"}}}
	for name, missing := range map[string]error{"plus node local": nil, "forbidden": errors.New("namespaces are forbidden; allow them")} {
		dir := t.TempDir()
		file := func(name string) *os.File {
			f, err := os.Create(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return f
		}
		stdio := Stdio{Out: file("out"), Err: file("err")}
		if err := (readiness{}).announce(stdio, o, 0, missing, ""); err != nil {
			t.Fatal(err)
		}
		out, _ := os.ReadFile(filepath.Join(dir, "out"))
		errs, _ := os.ReadFile(filepath.Join(dir, "err"))
		if strings.Contains(string(out), "plus node local") != (missing == nil) {
			t.Errorf("%s: %s", name, out)
		}
		if missing == nil && len(errs) > 0 || missing != nil && (!strings.Contains(string(errs), missing.Error()) || strings.Count(string(errs), "\n") != 1) {
			t.Errorf("%s: printed %q", name, errs)
		}
	}
}

func TestAnAddressThatNobodyReadsEndsNoPlane(t *testing.T) {
	const survived = 7
	if os.Getenv("KOBOSHI_TEST_WRITES_TO_NOBODY") != "" {
		writeToNobody()
		a := addresses{out: os.Stdout, ready: true}
		a.tell(forwarding.Address{Service: "web"})
		os.Exit(survived)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	// os.Args[0] cannot be used here, because a plane in this process has
	// changed it.
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "KOBOSHI_TEST_WRITES_TO_NOBODY=1")
	cmd.Stdout = writer
	err = cmd.Run()
	_ = writer.Close()
	if cmd.ProcessState.ExitCode() != survived {
		t.Errorf("%v", err)
	}
}
