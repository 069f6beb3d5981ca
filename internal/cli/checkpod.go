package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/oncluster"
	"github.com/koboshi-dev/koboshi/internal/check/oncluster/place"
)

// toPublish limits how long a Pod tries to store its result.
const toPublish = 5 * time.Minute

// podFlags holds the flags that only koboshi check pod has.
type podFlags struct {
	phase  string
	shards int
}

// newCheckPod returns the hidden command that runs a part of a check in a Pod, for koboshi check --on-cluster.
func newCheckPod(stdio Stdio) *cobra.Command {
	var f checkFlags
	var p podFlags
	cmd := &cobra.Command{
		Use:    "pod",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.inPod(cmd.Context(), cmd.Flags(), p, stdio)
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&p.phase, "phase", "", "plan or shard")
	cmd.Flags().IntVar(&p.shards, "shards", 1, "number of shards")
	return cmd
}

// inPod runs a part of a check, and stores its result. A part that is interrupted stores nothing, because it is
// repeated. The exit codes are those of oncluster, and findings are no failure of the Pod.
func (f *checkFlags) inPod(ctx context.Context, fs *pflag.FlagSet, p podFlags, stdio Stdio) error {
	hurry := make(chan struct{})
	close(hurry) // a Pod that ends has no time to stop its planes
	f.hurry, f.project.Built = hurry, place.Manager
	by, err := podIdentity()
	if err != nil {
		return usageError{err}
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return usageError{fmt.Errorf("koboshi check pod runs only in Pods of koboshi check --on-cluster: %w", err)}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return usageError{err}
	}
	document, failed := f.part(ctx, fs, p, by.Index, stdio)
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	if failed != nil {
		document = oncluster.Document{Error: failed.Error()}
	}
	limited, cancel := context.WithTimeout(ctx, toPublish)
	defer cancel()
	if err := oncluster.Publish(limited, client, document, by); err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		return err // another attempt may succeed
	}
	if failed != nil {
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: %v\n", failed)
		return exitStatus(oncluster.CouldNot)
	}
	return nil
}

// podIdentity reads from the environment which Pod this is.
func podIdentity() (by oncluster.Identity, err error) {
	by = oncluster.Identity{
		Namespace: os.Getenv(oncluster.NamespaceVariable), Job: os.Getenv(oncluster.JobVariable),
		JobUID: types.UID(os.Getenv(oncluster.JobUIDVariable)), Pod: os.Getenv(oncluster.PodVariable),
	}
	by.Index, err = strconv.Atoi(os.Getenv(oncluster.IndexVariable))
	if err != nil || by.Namespace == "" || by.Job == "" || by.Pod == "" {
		return by, errors.New("koboshi check pod runs only in Pods of koboshi check --on-cluster; use koboshi check")
	}
	return by, nil
}

// part runs the part of the check that this Pod is for.
func (f *checkFlags) part(ctx context.Context, fs *pflag.FlagSet, p podFlags, index int, stdio Stdio) (d oncluster.Document, err error) {
	if f.planOnly = p.phase == "plan"; !f.planOnly && p.phase != "shard" {
		return d, fmt.Errorf("--phase is %q; use plan or shard", p.phase)
	}
	o, err := f.options(fs, stdio.In)
	if err != nil {
		return d, err
	}
	if err := f.configure(&o); err != nil {
		return d, err
	}
	if o.PlanOnly = f.planOnly; f.planOnly {
		d.Plan, err = f.learnPlan(ctx, o, stdio)
		return d, err
	}
	o.Shard, o.Shards = index+1, p.shards
	d.Part, err = f.runShard(ctx, o, stdio)
	return d, err
}

// learnPlan learns the plan of all shards.
func (f *checkFlags) learnPlan(ctx context.Context, o check.Options, stdio Stdio) (*oncluster.Plan, error) {
	result, err := f.check(ctx, o, stdio)
	if err != nil {
		return nil, err
	}
	if idle := result.Report.Idle; idle != "" {
		return nil, errors.New(idle)
	}
	_, reason, _ := strings.Cut(result.Report.Profile, ": ") // empty if the user chose the profile
	return &oncluster.Plan{Profile: result.Profile, ProfileReason: reason, Faults: result.Plan, Skipped: len(result.Skipped)}, nil
}

// runShard runs one shard of the plan.
func (f *checkFlags) runShard(ctx context.Context, o check.Options, stdio Stdio) (*oncluster.Part, error) {
	packed, err := os.ReadFile(oncluster.PlanFile())
	if err != nil {
		return nil, err
	}
	learnt, err := oncluster.ReadPlan(packed)
	if err != nil {
		return nil, err
	}
	o.Handed, o.Profile, o.ProfileReason = learnt.Faults, learnt.Profile, learnt.ProfileReason
	if f.findings, err = os.MkdirTemp("", "koboshi-findings-"); err != nil {
		return nil, err
	}
	result, err := f.check(ctx, o, stdio)
	if err != nil {
		return nil, err
	}
	if err := result.Report.Keep(f.keepOptions(result)); err != nil {
		return nil, err
	}
	part := &oncluster.Part{Report: result.Report, Profile: result.Profile, Faults: []string{}, Findings: map[string][]byte{}}
	for _, p := range result.Plan {
		part.Faults = append(part.Faults, p.ID)
	}
	return part, readFiles(f.findings, part.Findings)
}

// readFiles reads the files in a folder.
func readFiles(dir string, files map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		files[e.Name()] = data
	}
	return nil
}
