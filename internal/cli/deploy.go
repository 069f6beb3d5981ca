package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/deploy"
	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

// deployVersion is the version of the output of koboshi deploy -o json.
const deployVersion = "deploy.koboshi.dev/v1"

// defaultManifest is the file that koboshi ship writes.
const defaultManifest = "dist/install.yaml"

// deployFlags holds the flags of koboshi deploy as given.
type deployFlags struct {
	cluster   devCluster
	files     []string
	name      string
	timeout   time.Duration
	force     bool
	pruneCRDs bool
	rollback  bool
	diff      bool
	dryRun    string
	delete    bool
	yes       bool
	output    string
}

func newDeploy(stdio Stdio) *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use:   "deploy",
		Short: "Install an operator in a cluster, and wait until it works",
		Long: `Install an operator in a cluster, and wait until it works.

Koboshi applies dist/install.yaml, which koboshi ship writes, or other manifests
to the cluster of your current context. The API server first checks all objects;
if it refuses one, nothing is changed. Then Koboshi

  - applies namespaces and CRDs, and waits until the kinds are served,
  - applies everything else, and waits until the workloads are current,
  - applies the webhook configurations, and waits until the webhooks answer,
  - applies objects of the CRDs, if the manifest has any,
  - deletes what an earlier deployment has installed and the manifest no longer
    has, except for namespaces, CRDs and PersistentVolumeClaims.

If the objects cannot be applied or do not become current, the previous deployment
is applied again, and the exit code is 1. A call that was interrupted is completed
by the next one.

The list of the objects is kept in the cluster, in the Secret
koboshi-deploy-NAME, as an ApplySet of kubectl. Fields that belong to other
managers are not changed without --force-conflicts.

--diff and --dry-run=server change nothing. With --diff, the exit code is 1 if a
deployment would change anything, and 2 after an error.

--delete deletes everything that was deployed. Objects of the CRDs are deleted
first, while the controller can still remove their finalizers; the inventory is
deleted last. Without the manifest, name the deployment with --name.`,
		Example: `  koboshi ship --image ghcr.io/example/operator:v1.2.0 --push && koboshi deploy
  koboshi deploy -f config/release --context staging
  koboshi deploy --diff
  koboshi deploy --delete
  kustomize build config/default | koboshi deploy -f -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.output != "" && f.output != "json" {
				return usageError{fmt.Errorf("unknown output format %q; use -o json, or omit -o", f.output)}
			}
			switch {
			case f.delete && (f.diff || f.dryRun == "server"):
				return usageError{errors.New("--delete cannot be combined with --diff or --dry-run; without --yes, it first shows what it would delete")}
			case f.dryRun != "" && f.dryRun != "server" && f.dryRun != "none":
				return usageError{fmt.Errorf("unknown --dry-run %q; use --dry-run=server, because only the API server can check the objects", f.dryRun)}
			case f.diff && f.output != "":
				return usageError{errors.New("--diff prints a diff, so it cannot be combined with -o; use --dry-run=server -o json")}
			case f.diff:
				return f.showDiff(cmd.Context(), stdio, cmd.OutOrStdout())
			case f.delete:
				return f.remove(cmd, stdio)
			case f.dryRun == "server":
				return f.preview(cmd.Context(), stdio, cmd.OutOrStdout())
			}
			return f.run(cmd.Context(), stdio, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVarP(&f.files, "filename", "f", []string{defaultManifest}, "manifest: a file, a folder, or - for the standard input; may be repeated")
	fs.StringVar(&f.cluster.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: as for kubectl)")
	fs.StringVar(&f.cluster.context, "context", "", "context of the kubeconfig (default: the current one)")
	fs.StringVar(&f.name, "name", "", "name of the deployment (default: the name of the first workload)")
	fs.DurationVar(&f.timeout, "timeout", 5*time.Minute, "limit for the deployment, and again for a rollback; 0 means none")
	fs.BoolVar(&f.force, "force-conflicts", false, "take fields over from other field managers")
	fs.BoolVar(&f.pruneCRDs, "prune-crds", false, "also delete CRDs that the manifest no longer has, with all their objects")
	fs.BoolVar(&f.rollback, "rollback", true, "apply the previous manifest again if the deployment fails")
	fs.BoolVar(&f.diff, "diff", false, "show what would change as a unified diff, and change nothing")
	fs.StringVar(&f.dryRun, "dry-run", "none", "server: let the API server check everything, and change nothing")
	fs.BoolVar(&f.delete, "delete", false, "delete what was deployed, and the objects of its CRDs")
	fs.BoolVarP(&f.yes, "yes", "y", false, "with --delete: do not ask")
	fs.StringVarP(&f.output, "output", "o", "", "output format: json")
	return cmd
}

func (f *deployFlags) run(ctx context.Context, stdio Stdio, out io.Writer) error {
	start := time.Now()
	o, err := f.options(stdio)
	if err != nil {
		return usageError{err}
	}
	progress := &deployProgress{w: stdio.Err, terminal: isTerminal(stdio.Err), out: out, quiet: f.output != "", reached: "current"}
	o.Observer = progress
	result, err := deploy.Run(ctx, o)
	progress.clear()
	if f.output == "json" && result != nil {
		return errors.Join(err, writeDeployed(out, result, err, time.Since(start)))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s works in namespace %s after %.1f s\n", result.Name, result.Namespace, time.Since(start).Seconds())
	return err
}

// showDiff shows what a deployment would change. As for kubectl diff, differences are the exit code 1,
// so an error has another one.
func (f *deployFlags) showDiff(ctx context.Context, stdio Stdio, out io.Writer) error {
	o, err := f.options(stdio)
	if err != nil {
		return usageError{err}
	}
	o.Observer = &deployProgress{w: stdio.Err, out: out, quiet: true}
	result, err := deploy.Preview(ctx, o, func(diff string) error {
		_, err := io.WriteString(out, diff)
		return err
	})
	switch {
	case err != nil:
		return usageError{err}
	case result.Different():
		return exitStatus(exitError)
	}
	return nil
}

// preview lets the API server check what a deployment would do.
func (f *deployFlags) preview(ctx context.Context, stdio Stdio, out io.Writer) error {
	start := time.Now()
	o, err := f.options(stdio)
	if err != nil {
		return usageError{err}
	}
	o.Observer = &deployProgress{w: stdio.Err, out: out, quiet: f.output != "", suffix: " (dry run)"}
	result, err := deploy.Preview(ctx, o, func(string) error { return nil })
	if f.output == "json" && result != nil {
		return errors.Join(err, writeDeployed(out, result, err, time.Since(start)))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, result.Summary())
	return err
}

// remove deletes a deployment.
func (f *deployFlags) remove(cmd *cobra.Command, stdio Stdio) error {
	start, ctx, out := time.Now(), cmd.Context(), cmd.OutOrStdout()
	if f.name != "" && !cmd.Flags().Changed("filename") {
		f.files = nil // the manifest in this folder may belong to another deployment
	}
	o, err := f.options(stdio)
	if err != nil {
		return usageError{err}
	}
	progress := &deployProgress{w: stdio.Err, terminal: isTerminal(stdio.Err), out: out, quiet: f.output != "", reached: "gone"}
	o.Observer = progress
	result, err := deploy.Delete(ctx, o, func(lines []string) error { return f.agree(ctx, stdio, lines) })
	progress.clear()
	if f.output == "json" && result != nil {
		return errors.Join(err, writeDeployed(out, result, err, time.Since(start)))
	}
	if err != nil || len(result.Changes) == 0 {
		return err
	}
	_, err = fmt.Fprintf(out, "%s is gone after %.1f s\n", result.Name, time.Since(start).Seconds())
	return err
}

// agree asks whether everything may be deleted.
func (f *deployFlags) agree(ctx context.Context, stdio Stdio, lines []string) error {
	if _, err := fmt.Fprintf(stdio.Err, "This will be deleted:\n  %s\n", strings.Join(lines, "\n  ")); err != nil {
		return err
	}
	if f.yes {
		return nil
	}
	if !atTerminal(stdio.In) {
		return usageError{errors.New("koboshi cannot ask for permission without a terminal; add --yes to delete this")}
	}
	agreed, err := ask(ctx, stdio.In, stdio.Err, "Delete it?")
	if err == nil && !agreed {
		err = errors.New("nothing was deleted")
	}
	return err
}

// options reads the manifests, and connects to the cluster.
func (f *deployFlags) options(stdio Stdio) (o deploy.Options, err error) {
	o = deploy.Options{Name: f.name, Timeout: f.timeout, Force: f.force, PruneCRDs: f.pruneCRDs, Rollback: f.rollback}
	if len(f.files) == 0 { // the deployment is found by its name
		o.Cluster, err = f.cluster.connect()
		return o, err
	}
	if o.Objects, err = order.Read(f.files, stdio.In); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; make %s with koboshi ship, or name another manifest with -f", err, defaultManifest)
		}
		return o, err
	}
	o.Cluster, err = f.cluster.connect()
	return o, err
}

// connect connects to the cluster of the flags, by default to that of the current context.
func (c devCluster) connect() (*cluster.Cluster, error) {
	config, namespace, err := c.load()
	if err != nil {
		return nil, err
	}
	return cluster.Connect(config, namespace)
}

// load reads how to reach the cluster, and the namespace of its context.
func (c devCluster) load() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context})
	if config, err = loaded.ClientConfig(); err == nil {
		namespace, _, err = loaded.Namespace()
	}
	if err != nil {
		err = fmt.Errorf("finding the cluster: %w; correct --kubeconfig or --context", err)
	}
	return config, namespace, err
}

// deployedObject is an object in the output of koboshi deploy -o json.
type deployedObject struct {
	Group     string        `json:"group,omitempty"`
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`
	Action    deploy.Action `json:"action"`
}

func writeDeployed(out io.Writer, r *deploy.Result, failure error, took time.Duration) error {
	document := struct {
		APIVersion string           `json:"apiVersion"`
		Namespace  string           `json:"namespace"`
		Name       string           `json:"name"`
		Objects    []deployedObject `json:"objects"`
		RolledBack bool             `json:"rolledBack"`
		Error      string           `json:"error,omitempty"`
		Seconds    float64          `json:"seconds"`
	}{
		APIVersion: deployVersion, Namespace: r.Namespace, Name: r.Name, Objects: []deployedObject{},
		RolledBack: r.RolledBack, Seconds: took.Round(time.Millisecond).Seconds(),
	}
	if failure != nil {
		document.Error = failure.Error()
	}
	for _, c := range r.Changes {
		document.Objects = append(document.Objects, deployedObject{c.Kind.Group, c.Kind.Kind, c.Namespace, c.Name, c.Action})
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// deployProgress shows what koboshi deploy does: the changes on out, and what is waited for on w. On
// a terminal, the latter is a list that changes.
type deployProgress struct {
	w        *os.File
	out      io.Writer
	terminal bool
	quiet    bool // out is for the result alone
	suffix   string
	reached  string // what an object is that is no longer waited for
	shown    int    // lines of the list on the terminal
	said     map[cluster.ID]string
}

func (p *deployProgress) Done(c deploy.Change) {
	p.clear()
	if p.quiet || c.Action == deploy.Unchanged {
		return
	}
	text := string(c.Action)
	if c.Action == deploy.Kept {
		text = "kept, although the manifest no longer has it"
	}
	_, _ = fmt.Fprintf(p.out, "%s: %s%s\n", c.ID, text, p.suffix)
}

func (p *deployProgress) Note(text string) {
	p.clear()
	_, _ = fmt.Fprintf(p.w, "note: %s\n", text)
}

func (p *deployProgress) Waiting(pending []ready.Pending) {
	p.clear()
	if p.terminal {
		p.list(pending)
		return
	}
	now := map[cluster.ID]string{}
	for _, o := range pending {
		now[o.ID] = o.Reason
		if p.said[o.ID] != o.Reason {
			_, _ = fmt.Fprintf(p.w, "waiting for %s\n", o)
		}
	}
	for id := range p.said {
		if _, waits := now[id]; !waits {
			_, _ = fmt.Fprintf(p.w, "%s is %s\n", id, p.reached)
		}
	}
	p.said = now
}

// list shows a list that clear removes again. Each object takes one line, so that the number of
// lines is known.
func (p *deployProgress) list(pending []ready.Pending) {
	width := widthOf(p.w)
	for _, o := range pending {
		line := strings.Join(strings.Fields("waiting for "+o.String()), " ")
		_, _ = fmt.Fprintln(p.w, textwidth.Short(line, width-1, "…"))
	}
	p.shown = len(pending)
}

// clear removes the list from the terminal.
func (p *deployProgress) clear() {
	if p.shown > 0 {
		_, _ = fmt.Fprintf(p.w, "\x1b[%dA\x1b[J", p.shown)
		p.shown = 0
	}
}

var _ deploy.Observer = (*deployProgress)(nil)
