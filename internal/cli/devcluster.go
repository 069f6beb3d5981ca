package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/devloop/pause"
	"github.com/koboshi-dev/koboshi/internal/devloop/session"
)

// devCluster holds the flags that name a cluster for koboshi dev.
type devCluster struct{ kubeconfig, context string }

func (c devCluster) given() bool { return c.kubeconfig != "" || c.context != "" }

// checkCluster refuses flags that have no meaning for an existing cluster.
func (f *devFlags) checkCluster() error {
	if !f.cluster.given() {
		return nil
	}
	for flag, given := range map[string]bool{"--profile": f.profile != "", "--run": len(f.run) > 0, "--samples": f.project.Samples != ""} {
		if given {
			return fmt.Errorf("%s applies only to the cluster that koboshi dev starts itself; omit it, or omit --kubeconfig and --context", flag)
		}
	}
	return nil
}

// pausedFile is the name of the file in devDataDir that records a paused manager.
const pausedFile = "paused.json"

// open returns the cluster that the flags name, or nil if they name none.
func (c devCluster) open(record string) (*session.Cluster, error) {
	if !c.given() {
		return nil, nil //nolint:nilnil // without flags, koboshi dev starts a cluster itself
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	switch files := filepath.SplitList(c.kubeconfig); len(files) {
	case 0:
	case 1:
		rules.ExplicitPath = c.kubeconfig
	default: // a record may name several, as KUBECONFIG may
		rules.Precedence = files
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.context})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w; correct --kubeconfig or --context", err)
	}
	name := config.Host
	raw, err := loaded.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	current := raw.CurrentContext
	if c.context != "" {
		current = c.context
	}
	if current != "" {
		name = fmt.Sprintf("%s (context %s)", config.Host, current)
	}
	return &session.Cluster{Config: config, Name: name, Record: record, Kubeconfig: absolute(rules), Context: current}, nil
}

// absolute returns the absolute paths of the files from which a kubeconfig is loaded, so that these
// files are also found from another folder and with another environment.
func absolute(rules *clientcmd.ClientConfigLoadingRules) string {
	files := rules.GetLoadingPrecedence()
	if rules.ExplicitPath != "" {
		files = []string{rules.ExplicitPath}
	}
	var paths []string
	for _, file := range files {
		if path, err := filepath.Abs(file); err == nil && file != "" { // as client-go skips empty entries
			paths = append(paths, path)
		}
	}
	return strings.Join(paths, string(filepath.ListSeparator))
}

// restoreWithin limits how long a start waits for a cluster in which something is paused.
const restoreWithin = 20 * time.Second

// restorePaused restores the workload that a killed session left paused. If this fails, the session
// does not start: the user must know that a cluster has no manager.
func restorePaused(ctx context.Context, record string, v *devView) error {
	r, err := pause.Read(record)
	if err != nil || r == nil {
		return err
	}
	v.Note(fmt.Sprintf("an earlier session left %s scaled to 0; restoring it", r.Workload))
	cluster, err := devCluster{r.Kubeconfig, r.Context}.open(record)
	if err == nil && cluster == nil {
		err = errors.New("the record does not name its cluster")
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, restoreWithin)
		defer cancel()
		err = cluster.Restore(ctx, r, v.Note)
	}
	if err != nil {
		return usageError{fmt.Errorf("%w\nmake the cluster reachable and start again; or scale %s to the number in its annotation %s, and delete %s", err, r.Workload, pause.Annotation, record)}
	}
	return nil
}
