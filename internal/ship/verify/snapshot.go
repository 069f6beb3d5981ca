package verify

import (
	"bufio"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
)

// snapshot is the list of all objects of a cluster.
type snapshot map[types.UID]cluster.ID

// takeSnapshot lists all objects.
func takeSnapshot(ctx context.Context, c *cluster.Cluster) (snapshot, error) {
	all, err := c.All(ctx)
	s := snapshot{}
	for _, o := range all {
		s[o.UID] = o.ID
	}
	return s, err
}

// changed returns the objects that were created or deleted after an earlier snapshot.
func (s snapshot) changed(earlier snapshot) (all []ready.Pending) {
	for uid, id := range s {
		if _, known := earlier[uid]; !known {
			all = append(all, ready.Pending{ID: id, Reason: "it was not there before"})
		}
	}
	for uid, id := range earlier {
		if _, still := s[uid]; !still {
			all = append(all, ready.Pending{ID: id, Reason: "it was there before"})
		}
	}
	return sorted(all)
}

// replaceable are kinds whose objects an upgrade may replace by others with new names: those that Kubernetes
// makes itself, and those that controllers cannot change, or name after their content.
var replaceable = []string{"ControllerRevision", "EndpointSlice", "Job", "ReplicaSet", "ConfigMap"}

// lost returns the objects that are missing in a later snapshot although an upgrade must not delete them.
// Objects of the replaceable kinds must only not be recreated under the same name, and Pods may be recreated.
func (s snapshot) lost(later snapshot) (all []ready.Pending) {
	names := map[cluster.ID]bool{}
	for _, id := range later {
		names[id] = true
	}
	for uid, id := range s {
		_, still := later[uid]
		switch {
		case still || id.Kind.Kind == "Pod":
		case names[id]:
			all = append(all, ready.Pending{ID: id, Reason: "it was deleted, and created again"})
		case !slices.Contains(replaceable, id.Kind.Kind):
			all = append(all, ready.Pending{ID: id, Reason: "it was deleted"})
		}
	}
	return sorted(all)
}

// sorted sorts objects by their names.
func sorted(all []ready.Pending) []ready.Pending {
	slices.SortFunc(all, func(a, b ready.Pending) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// shown is the number of lines of each container that are shown.
const shown int64 = 10

// lastLines returns what the containers in a namespace printed last.
func lastLines(ctx context.Context, config *rest.Config, namespace string) (lines []string) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			stream, err := client.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, TailLines: new(shown)}).Stream(ctx)
			if err != nil {
				continue
			}
			for scanner := bufio.NewScanner(stream); scanner.Scan(); {
				lines = append(lines, scanner.Text())
			}
			_ = stream.Close()
		}
	}
	return lines
}
