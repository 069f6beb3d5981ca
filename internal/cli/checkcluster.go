package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/oncluster"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// mostShards is the largest number of Pods. Each of them learns all scenarios, so more would mostly learn.
const mostShards = 100

// clusterFlags holds the flags of koboshi check --on-cluster as given.
type clusterFlags struct {
	on               bool
	image, namespace string
	shards           int
	cpu, memory      string
	keep             bool
	cluster          devCluster
}

func (c *clusterFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&c.on, "on-cluster", false, "run the check in Pods of the cluster of the current context, with the image of koboshi ship --check-image")
	fs.StringVar(&c.image, "image", "", "with --on-cluster: the image of the Pods, as the cluster pulls it")
	fs.IntVar(&c.shards, "shards", 4, "with --on-cluster: number of Pods among which the faults are divided")
	fs.StringVar(&c.namespace, "namespace", "", "with --on-cluster: namespace of the Pods (default: that of the context)")
	fs.StringVar(&c.cpu, "shard-cpu", "2", "with --on-cluster: processors that each Pod requests")
	fs.StringVar(&c.memory, "shard-memory", "2Gi", "with --on-cluster: memory that each Pod requests")
	fs.BoolVar(&c.keep, "keep", false, "with --on-cluster: leave the Pods and their results in the cluster")
	fs.StringVar(&c.cluster.kubeconfig, "kubeconfig", "", "with --on-cluster: kubeconfig of the cluster (default: as for kubectl)")
	fs.StringVar(&c.cluster.context, "context", "", "with --on-cluster: context of the kubeconfig (default: the current one)")
}

var (
	// clusterOnly lists the flags that have a meaning only with --on-cluster.
	clusterOnly = []string{"image", "shards", "namespace", "shard-cpu", "shard-memory", "keep", "kubeconfig", "context"}
	// localOnly lists the flags that are not passed on to the Pods, because they concern the result, or what the
	// Pods have in another place.
	localOnly = append([]string{"on-cluster", "dir", "seed", "output", "findings", "verbose"}, clusterOnly...)
	// impossible maps flags to the reason why they cannot be used with --on-cluster.
	impossible = map[string]string{
		"env":           "its values would be readable in the cluster; omit it",
		"set":           "its values would be readable in the cluster; put them into a file of the project, and name it with -f",
		"main":          "the image has the manager already; use it with koboshi ship",
		"driver":        "a test suite needs the programs of this machine; run it here",
		"run":           "Pods cannot run programs for other images; check such a scenario here",
		"plan":          "run koboshi check --plan here",
		"resume":        "a lost shard is repeated from its beginning; omit it",
		"shard":         "--shards divides the faults; omit it",
		"stop-at-first": "a shard does not know what others have found; omit it, or use --budget",
		"update-budget": "it changes a file of this machine; run it here",
		"upgrade-from":  "the image has only one version of the manager; run it here",
	}
	// projectPaths lists the flags whose values are files or folders relative to the project.
	projectPaths = []string{"kustomization", "manifests", "helm", "values", "crds", "rbac", "webhooks", "with-crds", "given", "samples"}
	// currentPaths lists those whose values are relative to the current folder.
	currentPaths = []string{"scenario", "config"}
)

// combine returns an error if the flags cannot be used together.
func (c *clusterFlags) combine(fs *pflag.FlagSet, command []string) error {
	if !c.on {
		for _, name := range clusterOnly {
			if fs.Changed(name) {
				return fmt.Errorf("--%s applies only to --on-cluster; add --on-cluster, or omit it", name)
			}
		}
		return nil
	}
	for name, why := range impossible {
		if fs.Changed(name) {
			return fmt.Errorf("--%s cannot be combined with --on-cluster: %s", name, why)
		}
	}
	switch {
	case len(command) > 0:
		return errors.New("--on-cluster checks the manager in the image, so there can be no command after --; omit it")
	case c.image == "":
		return errors.New("--on-cluster needs the image that koboshi ship --check-image has made; name it with --image")
	case c.shards < 1 || c.shards > mostShards:
		return fmt.Errorf("--shards is %d; use 1 to %d", c.shards, mostShards)
	}
	return nil
}

// args returns the flags of the check in the Pods. The paths are those in the image.
func (c *clusterFlags) args(fs *pflag.FlagSet, dir string, seed uint64) (args []string, err error) {
	fs.Visit(func(flag *pflag.Flag) {
		if err != nil || slices.Contains(localOnly, flag.Name) {
			return
		}
		for _, value := range valuesOf(flag) {
			switch {
			case slices.Contains(currentPaths, flag.Name):
				value, err = inProject(dir, value)
			case slices.Contains(projectPaths, flag.Name):
				value, err = inProject(dir, filepath.Join(dir, value))
			}
			if err != nil {
				err = fmt.Errorf("--%s: %w", flag.Name, err)
				return
			}
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	return append(args, fmt.Sprintf("--seed=%d", seed)), err
}

// inProject returns a path relative to the folder of the project.
func inProject(dir, path string) (string, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(relative) {
		return "", fmt.Errorf("%s is outside of the project, and the image has only files of the project; move it there, and make the image again", path)
	}
	return filepath.ToSlash(relative), nil
}

// planArgs returns the flags for the Pod that learns the plan. It tries no inputs and no paths, and takes the
// time that it needs.
func planArgs(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		return slices.Contains([]string{"inputs", "paths", "budget"}, name)
	})
}

// checkOnCluster runs the check in a cluster.
func (f *checkFlags) checkOnCluster(ctx context.Context, fs *pflag.FlagSet, stdio Stdio) error {
	outputs, err := parseOutputs(f.output)
	if err != nil {
		return usageError{err}
	}
	o, err := f.options(fs, stdio.In)
	if err != nil {
		return usageError{err}
	}
	tty := isTerminal(stdio.Err)
	progress := report.NewProgress(stdio.Err, report.ProgressOptions{TTY: tty, Color: tty && os.Getenv("NO_COLOR") == "", Width: widthOf(stdio.Err)})
	defer progress.Close()
	where, err := f.cluster.options(fs, f.project.Dir, o.Seed)
	if err != nil {
		return usageError{err}
	}
	where.Observer = &clusterProgress{Progress: progress, shards: where.Shards, began: time.Now()}
	progress.Note(fmt.Sprintf("seed %d", o.Seed))
	result, failed := oncluster.Run(ctx, where)
	if failed != nil && !result.HasParts() {
		return couldNot(ctx, failed)
	}
	if failed != nil && ctx.Err() != nil {
		failed = errors.New("the check was interrupted")
	}
	merged, err := f.mergeParts(result, &o, failed)
	if err != nil {
		return couldNot(ctx, err)
	}
	progress.Close()
	unsaved := merged.Report.Keep(f.keepOptions(merged))
	if err := errors.Join(outputs.write(merged, f.verbose, stdio), unsaved); err != nil {
		return err
	}
	return exitOf(merged.Report)
}

// options returns where and how to run the check.
func (c *clusterFlags) options(fs *pflag.FlagSet, dir string, seed uint64) (o oncluster.Options, err error) {
	args, err := c.args(fs, dir, seed)
	if err != nil {
		return o, err
	}
	o = oncluster.Options{Image: c.image, Shards: c.shards, PlanArgs: planArgs(args), ShardArgs: args, Keep: c.keep}
	for _, quantity := range []struct {
		flag, text string
		to         *resource.Quantity
	}{{"shard-cpu", c.cpu, &o.CPU}, {"shard-memory", c.memory, &o.Memory}} {
		if *quantity.to, err = resource.ParseQuantity(quantity.text); err != nil || quantity.to.Sign() <= 0 {
			return o, fmt.Errorf("--%s is %q; write a quantity such as 2 or 500m for processors, and 2Gi for memory", quantity.flag, quantity.text)
		}
	}
	config, namespace, err := c.cluster.load()
	if err != nil {
		return o, err
	}
	o.Namespace = cmp.Or(c.namespace, namespace)
	o.Client, err = kubernetes.NewForConfig(config)
	return o, err
}

// mergeParts merges the results of the shards. If ended is not nil, it is the reason why the others have none.
func (f *checkFlags) mergeParts(r *oncluster.Result, o *check.Options, ended error) (*check.Result, error) {
	whole := &check.Result{Scenarios: map[string]*scenario.Scenario{}, Traces: map[string][]trace.Entry{}}
	var reports []*report.Report
	for _, part := range r.Parts {
		if part == nil {
			continue
		}
		reports = append(reports, part.Report)
		whole.Profile = part.Profile
		if err := takeFindings(whole, part); err != nil {
			return nil, err
		}
	}
	if len(reports) == 0 {
		return nil, fmt.Errorf("no shard has a result; the first: %s", r.Failed[1])
	}
	merged, err := report.Merge(reports)
	if err != nil {
		return nil, err
	}
	merged.Command, merged.Args, merged.Strict = o.Command, o.Args, f.strict
	if ended != nil {
		merged.Stopped = fmt.Sprintf("stopped after %d of %d shards: %v", len(reports), len(r.Parts), ended)
	}
	for shard := 1; shard <= len(r.Parts); shard++ {
		if why, failed := r.Failed[shard]; failed && merged.Stopped == "" {
			merged.Stopped = fmt.Sprintf("stopped, because shard %d of %d could not be run: %s", shard, len(r.Parts), why)
		}
	}
	whole.Report = merged
	return whole, nil
}

// takeFindings adds the scenarios and the traces of a shard's findings, which are files that it has saved.
func takeFindings(whole *check.Result, part *oncluster.Part) error {
	dir, err := os.MkdirTemp("", "koboshi-findings-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, content := range part.Findings {
		if !filepath.IsLocal(name) || filepath.Base(name) != name {
			return fmt.Errorf("a shard returned a finding with the name %q", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	saved, err := report.LoadFindings(dir)
	for _, s := range saved {
		whole.Scenarios[s.Scenario.Name], whole.Traces[s.Finding.ID] = &s.Scenario, s.Trace
	}
	return err
}

// clusterProgress shows the progress of a check in a cluster.
type clusterProgress struct {
	*report.Progress
	shards int
	began  time.Time
}

// Planned is called once the plan is known.
func (p *clusterProgress) Planned(learnt *oncluster.Plan) {
	p.Note(fmt.Sprintf("the plan has %s, for %s", noun.Count(len(learnt.Faults), "fault"), noun.Count(p.shards, "shard")))
}

// Ended is called when a shard has ended.
func (p *clusterProgress) Ended(shard int, part *oncluster.Part, why string) {
	after := time.Since(p.began).Round(time.Second)
	if part == nil {
		p.Note(fmt.Sprintf("shard %d/%d could not be run: %s", shard, p.shards, why))
		return
	}
	p.Note(fmt.Sprintf("shard %d/%d ended after %s: %s, %s", shard, p.shards, after, noun.Count(len(part.Faults), "fault"), noun.Count(len(part.Report.Findings), "finding")))
}

var _ oncluster.Observer = (*clusterProgress)(nil)
