package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/controlplane/poll"
)

const pollInterval = 10 * time.Millisecond

// waitReadyz waits until the API server reports that it is ready.
func (p *Plane) waitReadyz(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(p.loopback)
	if err != nil {
		return err
	}
	return p.poll(ctx, "/readyz", func(ctx context.Context) (bool, error) {
		body, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if failing := failingChecks(body); err != nil && len(failing) > 0 {
			err = fmt.Errorf("not ready: %s", strings.Join(failing, ", "))
		}
		return true, err
	})
}

// failingChecks returns the names of the failing checks in a response of
// /readyz, which has one line per check: "[+]name ok" or "[-]name failed:
// reason withheld".
func failingChecks(body []byte) (names []string) {
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return names
}

// waitUsable waits for the default service account and for Ready nodes, which a user's
// first commands need in addition to /readyz. A Pod is refused while its namespace has no
// default service account, and stays pending while no node is Ready.
func (p *Plane) waitUsable(ctx context.Context, client kubernetes.Interface) error {
	if p.opts.Profile.RunsServiceAccounts() {
		err := p.poll(ctx, "the default service account", func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
			return true, err
		})
		if err != nil {
			return p.named(managerName, err)
		}
	}
	if p.opts.Nodes == 0 && p.local == nil {
		return nil
	}
	return p.named(nodesName, p.poll(ctx, "the nodes to be Ready", func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodes.OwnedLabel})
		if err != nil {
			return false, err
		}
		return allReady(slices.DeleteFunc(list.Items, func(n corev1.Node) bool {
			return n.Name == nodes.Local && p.local == nil // this node will never be Ready
		})), nil
	}))
}

func allReady(list []corev1.Node) bool {
	ready := 0
	for _, n := range list {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready == len(list)
}

// poll asks until the answer is yes; see package poll.
func (p *Plane) poll(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	return poll.Poll{Interval: pollInterval, Waiting: p.opts.Waiting}.Until(ctx, what, ask)
}
