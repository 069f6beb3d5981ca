package nodes

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestPodRangesAtTheEnds(t *testing.T) {
	t.Parallel()
	for index, want := range map[int]string{
		0:       "10.128.0.0/24",
		1:       "10.128.1.0/24",
		255:     "10.128.255.0/24",
		256:     "10.129.0.0/24",
		Max - 1: "10.255.255.0/24",
	} {
		if got := podCIDR(index); got != want {
			t.Errorf("podCIDR(%d) = %s, want %s", index, got, want)
		}
	}
}

func TestPodRangesOfAllNodesAreDistinctAndInside(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for index := range Max {
		cidr := podCIDR(index)
		if other, ok := seen[cidr]; ok {
			t.Fatalf("nodes %d and %d both have %s", other, index, cidr)
		}
		seen[cidr] = index
		if prefix := netip.MustParsePrefix(cidr); prefix.Masked() != prefix || !podCIDRs.Contains(prefix.Addr()) {
			t.Fatalf("node %d has %s, which is not a range inside %s", index, cidr, podCIDRs)
		}
	}
}

func TestEnsureMakesExactlyTheNodesThatAreWanted(t *testing.T) {
	t.Parallel()
	foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "somebody-elses"}}
	client := fake.NewClientset(foreign)
	for _, test := range []struct {
		count, port int
		want        map[string]int32 // the ports of existing nodes
	}{
		{0, 1, map[string]int32{"somebody-elses": 0}},
		{1, 1, map[string]int32{"somebody-elses": 0, "node-1": 0}},
		{3, 2, map[string]int32{"somebody-elses": 0, "node-1": 2, "node-2": 0, "node-3": 0}},
		{3, 3, map[string]int32{"somebody-elses": 0, "node-1": 3, "node-2": 3, "node-3": 3}},
		{2, 4, map[string]int32{"somebody-elses": 0, "node-1": 4, "node-2": 4}},
		{0, 5, map[string]int32{"somebody-elses": 0}},
	} {
		if err := Ensure(t.Context(), client, test.count, test.port); err != nil {
			t.Fatalf("Ensure %d: %v", test.count, err)
		}
		list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int32{}
		for _, node := range list.Items {
			got[node.Name] = node.Status.DaemonEndpoints.KubeletEndpoint.Port
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("after Ensure %d on port %d (-want +got):\n%s", test.count, test.port, diff)
		}
	}
}

func TestStagesCoverNodesAndPods(t *testing.T) {
	t.Parallel()
	got, err := stages(false)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for ref := range maps.Keys(got) {
		kinds = append(kinds, ref.APIGroup+" "+ref.Kind)
	}
	slices.Sort(kinds)
	if diff := cmp.Diff([]string{"v1 Node", "v1 Pod"}, kinds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
