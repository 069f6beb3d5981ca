package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// clusterReport is the part of a report that must be the same in a cluster and in one process.
type clusterReport struct {
	Findings []struct {
		Verdict, Scenario, Step string
		Differences             []struct{ Path string }
	}
	Tried []struct {
		Scenario, Kind string
		Planned, Runs  int
	}
	LeftOut, Inconclusive []any
}

func (r clusterReport) lines() (lines []string) {
	for _, f := range r.Findings {
		lines = append(lines, fmt.Sprint("finding ", f.Verdict, f.Scenario, f.Step, f.Differences))
	}
	for _, t := range r.Tried {
		lines = append(lines, fmt.Sprint("tried ", t))
	}
	lines = append(lines, fmt.Sprint("left out ", len(r.LeftOut), ", inconclusive ", len(r.Inconclusive)))
	slices.Sort(lines)
	return slices.Compact(lines)
}

func readClusterReport(t *testing.T, path string) (r clusterReport) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// clusterProject makes a project of the controller in conformance/checked, with a bug.
func clusterProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"testdata/oncluster": dir, "checked": filepath.Join(dir, "cmd")} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{
		"../go.sum": "go.sum", "../go.mod": "go.mod",
		"testdata/check/widgets.yaml": "config/crd/widgets.yaml", "testdata/check/create.yaml": "scenarios/create.yaml",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), "module github.com/koboshi-dev/koboshi\n", "module example.com/checked\n", 1)
		writeFile(t, filepath.Join(dir, to), text)
	}
	return dir
}

// inProject runs a command of koboshi in a project, and returns what it printed.
func inProject(dir string, args ...string) (string, error) {
	cmd := exec.Command(koboshi, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// loseAPod deletes the first Pod of a shard that runs.
func loseAPod(ctx context.Context, p *plane) error {
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		pods, err := p.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "check.koboshi.dev/job"})
		if err != nil {
			return false, err
		}
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && !strings.Contains(pod.Name, "-plan-") {
				return true, p.client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{})
			}
		}
		return false, nil
	})
}

// leftovers lists what a check has left in the cluster.
func leftovers(ctx context.Context, t *testing.T, p *plane) string {
	t.Helper()
	out, err := p.tryKubectl("", "get", "jobs,pods,configmaps,serviceaccounts,roles,rolebindings", "--namespace=default",
		"--selector=app.kubernetes.io/managed-by=koboshi", "--output=name")
	if err != nil && ctx.Err() == nil {
		t.Fatal(err, out)
	}
	return strings.TrimSpace(strings.ReplaceAll(out, "No resources found in default namespace.", ""))
}

// TestACheckOnAClusterFindsWhatOneProcessFinds loses a Pod on the way.
func TestACheckOnAClusterFindsWhatOneProcessFinds(t *testing.T) {
	needNamespaces(t)
	t.Parallel()
	dir := clusterProject(t)
	if out, err := inProject(dir, "ship", "--platform=linux/"+runtime.GOARCH, "--check-image=checked-check:v1"); err != nil {
		t.Fatal(err, out)
	}
	p := startPlane(t, "--profile=full", "--run=checked-check="+filepath.Join(dir, "dist", "check-image"))

	ctx, cancel := context.WithTimeout(t.Context(), checkWithin)
	defer cancel()
	lost := make(chan error, 1)
	go func() { lost <- loseAPod(ctx, p) }()
	flags := []string{"check", "--seed=7", "--scenario=scenarios/create.yaml", "--workers=1", "--horizon=0s", "--faults=kill-lost"}
	out, err := inProject(dir, append(flags, "--on-cluster", "--kubeconfig="+p.kubeconfig, "--image=checked-check:v1",
		"--shards=2", "--shard-cpu=100m", "--shard-memory=100Mi", "--findings=cluster", "-o=json=cluster.json")...)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Fatalf("%v, want exit code 1 for findings\n%s", err, out)
	}
	cancel()
	if err := <-lost; err != nil {
		t.Fatalf("no Pod was deleted: %v\n%s", err, out)
	}
	if !strings.Contains(out, "was deleted; another one repeats its part") {
		t.Errorf("the lost Pod is not mentioned\n%s", out)
	}
	if out, err := inProject(dir, append(flags, "--findings=local", "-o=json=local.json")...); err == nil {
		t.Fatalf("one process finds nothing\n%s", out)
	}
	here, there := readClusterReport(t, filepath.Join(dir, "local.json")), readClusterReport(t, filepath.Join(dir, "cluster.json"))
	if diff := cmp.Diff(here.lines(), there.lines()); diff != "" {
		t.Errorf("in the cluster, the check differs (-here +there):\n%s\n%s", diff, out)
	}
	if saved, _ := filepath.Glob(filepath.Join(dir, "cluster", "*.trace.jsonl")); len(saved) == 0 {
		t.Errorf("no finding is saved with its trace\n%s", out)
	}
	gone := func(ctx context.Context) (bool, error) { return leftovers(ctx, t, p) == "", nil }
	if err := wait.PollUntilContextTimeout(t.Context(), pollInterval, within, true, gone); err != nil {
		t.Errorf("%v: left in the cluster:\n%s", err, leftovers(t.Context(), t, p))
	}
}
