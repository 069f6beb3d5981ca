package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// stopWithin is the time that an interrupted suite has to stop its control plane in its
// AfterSuite.
const stopWithin = 45 * time.Second

// A Run holds the options for one run of a suite.
type Run struct {
	Assets string // the folder with etcd, kube-apiserver and kubectl
	Seed   int64
	Limit  time.Duration
	Log    string // file for the output; its folder is created if necessary
}

// A Spec is one test, of Ginkgo or of package testing.
type Spec struct {
	Name    string // unique within the suite
	Outcome string // passed, failed, skipped, or another word that Ginkgo uses
	Why     string // the message of the failure, if there was one
	Ginkgo  bool
}

// Run runs the suite once. A failing spec is not an error. An error means that the suite
// could not run, or that the outcomes of its specs are unknown.
func (s *Suite) Run(ctx context.Context, r Run) ([]Spec, error) {
	if err := os.MkdirAll(filepath.Dir(r.Log), 0o755); err != nil {
		return nil, err
	}
	report := r.Log + ".json"
	out, err := os.Create(r.Log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, s.binary, s.args(r, report)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	temporary, err := os.MkdirTemp("", "suite-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	mark := "CONFORMANCE_RUN=" + temporary
	cmd.Env = append(environment(os.Environ(), r.Assets), mark, "TMPDIR="+temporary)
	defer killMarked(mark)
	// The suite gets a separate process group, so that Ctrl-C reaches it only once,
	// through Cancel.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopWithin
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return nil, fmt.Errorf("running %s: %w", s.Name, err)
	}
	return specs(report, r.Log)
}

func (s *Suite) args(r Run, report string) []string {
	args := []string{"-test.v=test2json", "-test.timeout=" + r.Limit.String()}
	if s.ginkgo {
		args = append(args, "--ginkgo.json-report="+report, "--ginkgo.no-color",
			"--ginkgo.seed="+strconv.FormatInt(r.Seed, 10), "--ginkgo.timeout="+r.Limit.String())
	}
	return args
}

// environment returns the user's environment without variables that would make a suite
// use programs outside the folder of assets.
func environment(env []string, assets string) (kept []string) {
	for _, e := range env {
		switch name, _, _ := strings.Cut(e, "="); {
		case strings.HasPrefix(name, "TEST_ASSET_"), strings.HasPrefix(name, "KOBOSHI"),
			name == "KUBEBUILDER_ASSETS", name == "USE_EXISTING_CLUSTER", name == "KUBECONFIG":
		default:
			kept = append(kept, e)
		}
	}
	return append(kept, "KUBEBUILDER_ASSETS="+assets)
}

// specs reads the report of a run. A suite that crashed leaves no report. In that case
// specs reads the finished Go tests from the log, so that the difference between the
// sides becomes visible.
func specs(report, log string) ([]Spec, error) {
	output, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	found := goTests(string(output))
	data, err := os.ReadFile(report)
	if errors.Is(err, fs.ErrNotExist) {
		return number(found), nil
	}
	if err != nil {
		return nil, err
	}
	ginkgo, err := ginkgoSpecs(data)
	return number(append(found, ginkgo...)), err
}

// ended matches the line that reports the end of a test with -test.v=test2json. The mark at the
// start of the line distinguishes it from the test's own output.
var ended = regexp.MustCompile(`\x16 *--- (PASS|FAIL|SKIP): (\S+) \(`)

func goTests(output string) (found []Spec) {
	outcome := map[string]string{"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
	for _, m := range ended.FindAllStringSubmatch(output, -1) {
		found = append(found, Spec{Name: m[2], Outcome: outcome[m[1]]})
	}
	return found
}

func ginkgoSpecs(report []byte) (found []Spec, err error) {
	var suites []types.Report
	if err := json.Unmarshal(report, &suites); err != nil {
		return nil, fmt.Errorf("reading Ginkgo's report: %w", err)
	}
	for _, suite := range suites {
		for _, r := range suite.SpecReports {
			name := r.FullText()
			if r.LeafNodeType != types.NodeTypeIt {
				name = strings.TrimSpace("[" + r.LeafNodeType.String() + "] " + name)
			}
			found = append(found, Spec{Name: name, Outcome: r.State.String(), Why: why(r), Ginkgo: true})
		}
	}
	return found, nil
}

func why(r types.SpecReport) string {
	if !r.State.Is(types.SpecStateFailureStates) {
		return ""
	}
	return fmt.Sprintf("%s:%d\n%s\n%s", filepath.Base(r.FailureLocation().FileName), r.FailureLocation().LineNumber,
		r.FailureMessage(), r.CombinedOutput())
}

// number numbers specs with the same name. With the same seed the specs run in the same
// order on both sides.
func number(specs []Spec) []Spec {
	seen := map[string]int{}
	for i, s := range specs {
		if seen[s.Name]++; seen[s.Name] > 1 {
			specs[i].Name += fmt.Sprintf(" (%d)", seen[s.Name])
		}
	}
	return specs
}
