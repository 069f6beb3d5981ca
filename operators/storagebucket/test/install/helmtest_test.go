package install

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

func TestHelmTestAwaitsTheStorageBucketThatItMakes(t *testing.T) {
	for where, values := range map[string]map[string]any{
		namespace: nil,
		"team-a":  set("namespaces", []any{"team-a", "team-b"}),
	} {
		t.Run(where, func(t *testing.T) {
			in := rendered(t, values)
			var bucket *storagev1.StorageBucket
			var pod *corev1.Pod
			for key, object := range in {
				if !isHook(object) {
					continue
				}
				switch o := object.(type) {
				case *storagev1.StorageBucket:
					bucket = o
				case *corev1.Pod:
					pod = o
				default:
					t.Errorf("%s must not be a hook", key)
				}
				if a := object.GetAnnotations(); a["helm.sh/hook"] != "test" || a["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
					t.Errorf("%s: %v", key, a)
				}
			}
			if bucket == nil || pod == nil {
				t.Fatalf("no StorageBucket %v or no Pod %v", bucket, pod)
			}
			if bucket.Namespace != where || pod.Namespace != namespace {
				t.Errorf("the StorageBucket is in %s, want %s; the Pod in %s", bucket.Namespace, where, pod.Namespace)
			}
			// A managed StorageBucket could not be deleted without its store.
			if bucket.Spec.Management == storagev1.Manage {
				t.Error("the StorageBucket is managed")
			}
			const weight = "helm.sh/hook-weight"
			if bucket.Annotations[weight] >= pod.Annotations[weight] {
				t.Errorf("the StorageBucket has the hook weight %s, and the Pod that awaits it has %s; want a lower weight for the StorageBucket", bucket.Annotations[weight], pod.Annotations[weight])
			}
			c := pod.Spec.Containers[0]
			if want := "--await=" + bucket.Namespace + "/" + bucket.Name; !slices.Contains(c.Args, want) {
				t.Errorf("no %s in %v", want, c.Args)
			}
			known := help(t)[c.Command[0]]
			for _, arg := range c.Args {
				if _, ok := known[flagName(arg)]; !ok {
					t.Errorf("%s has no flag %s", c.Command[0], arg)
				}
			}
			// The Pod must use the manager's service account, because that account may read
			// the StorageBucket.
			get[*corev1.ServiceAccount](t, in, pod.Spec.ServiceAccountName)
		})
	}
}
