package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestAPodIsToldAnAddressOfTheAPIServerThatItCanReach(t *testing.T) {
	t.Parallel()
	r := reachable{serviceIP: "10.0.0.1", host: "127.0.0.1", port: "39407"}
	for name, test := range map[string]struct{ told, want map[string]string }{
		"of the Service": {
			map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "KUBERNETES_SERVICE_PORT_HTTPS": "443", "WEB_SERVICE_HOST": "10.0.0.7"},
			map[string]string{"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "39407", "KUBERNETES_SERVICE_PORT_HTTPS": "39407", "WEB_SERVICE_HOST": "10.0.0.7"},
		},
		"of the Pod's own": {
			map[string]string{"KUBERNETES_SERVICE_HOST": "example.com", "KUBERNETES_SERVICE_PORT": "6443"},
			map[string]string{"KUBERNETES_SERVICE_HOST": "example.com", "KUBERNETES_SERVICE_PORT": "6443"},
		},
		"none": {map[string]string{"KUBERNETES_SERVICE_PORT": "443"}, map[string]string{"KUBERNETES_SERVICE_PORT": "443"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env []*runtimeapi.KeyValue
			for key, value := range test.told {
				env = append(env, &runtimeapi.KeyValue{Key: key, Value: []byte(value)})
			}
			r.replace(env)
			got := map[string]string{}
			for _, v := range env {
				got[v.Key] = string(v.Value)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
