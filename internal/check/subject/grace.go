package subject

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// defaultGrace is the grace period of a Pod that does not set one, see
// k8s.io/api/core/v1.DefaultTerminationGracePeriodSeconds.
const defaultGrace = 30 * time.Second

// Grace returns the time that a kubelet gives the controller between SIGTERM and SIGKILL.
func (s *Subject) Grace() time.Duration {
	for _, object := range s.Self {
		path := []string{"spec", "terminationGracePeriodSeconds"}
		if object.GetKind() != "Pod" {
			path = append([]string{"spec", "template"}, path...)
		}
		if seconds, found, err := unstructured.NestedInt64(object.Object, path...); found && err == nil {
			return time.Duration(seconds) * time.Second
		}
	}
	return defaultGrace
}
