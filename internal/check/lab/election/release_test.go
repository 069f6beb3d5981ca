package election

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const held = `{"holderIdentity":"a","leaseDurationSeconds":15,"acquireTime":"2026-01-01T00:00:00Z","renewTime":"2026-01-01T00:00:01Z","leaderTransitions":3}`

func configMap(record string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "leader", Annotations: map[string]string{request.LeaderAnnotation: record, "x": "y"}},
		Data:       map[string]string{"kept": "so"},
	}
}

func TestTheElectionOfAConfigMapIsReleased(t *testing.T) {
	client := fake.NewSimpleDynamicClient(scheme.Scheme, configMap(held))
	if got := Release(t.Context(), client, []string{"ConfigMap/d/leader"}); !slices.Equal(got, []string{"the election in ConfigMap d/leader expired while the controller was down"}) {
		t.Errorf("%q", got)
	}
	object, err := client.Resource(records["ConfigMap"]).Namespace("d").Get(t.Context(), "leader", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var record resourcelock.LeaderElectionRecord
	if err := json.Unmarshal([]byte(object.GetAnnotations()[request.LeaderAnnotation]), &record); err != nil {
		t.Fatal(err)
	}
	if record.HolderIdentity != "" || record.LeaseDurationSeconds != 1 || record.LeaderTransitions != 3 || time.Since(record.RenewTime.Time) > time.Minute {
		t.Errorf("the record is %+v", record)
	}
	if data, _ := object.Object["data"].(map[string]any); data["kept"] != "so" || object.GetAnnotations()["x"] != "y" {
		t.Errorf("the rest of the object has changed: %v", object)
	}
	if got := Release(t.Context(), client, []string{"ConfigMap/d/leader"}); len(got) != 0 {
		t.Errorf("it is released once more: %q", got)
	}
}

func TestARecordThatDoesNotExpireIsNotReleased(t *testing.T) {
	for name, record := range map[string]string{
		"without a holder": `{"leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:01Z"}`,
		"held for life":    `{"holderIdentity":"a"}`,
		"without a time":   `{"holderIdentity":"a","leaseDurationSeconds":15}`,
	} {
		if got := Release(t.Context(), fake.NewSimpleDynamicClient(scheme.Scheme, configMap(record)), []string{"ConfigMap/d/leader", "ConfigMap/d/absent"}); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAnElectionThatCannotBeReleasedIsNoted(t *testing.T) {
	client := fake.NewSimpleDynamicClient(scheme.Scheme, configMap("{"))
	for name, want := range map[string]string{"ConfigMap/d/leader": request.LeaderAnnotation, "Secret/d/leader": "no kind of election"} {
		if got := Release(t.Context(), client, []string{name}); len(got) != 1 || !strings.Contains(got[0], "so it has to expire: ") || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// takes returns a run in which an instance takes an election in a ConfigMap, and then
// creates a Pod.
func takes(holder string) *evidence.Run {
	object := map[string]any{"metadata": map[string]any{"namespace": "d", "name": "leader", "annotations": map[string]any{
		request.LeaderAnnotation: strings.Replace(held, `"a"`, `"`+holder+`"`, 1),
	}}}
	body, _ := json.Marshal(object)
	return &evidence.Run{
		History: state.History{Changes: []state.Change{{
			Revision: 7, Ref: state.Ref{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "d", Name: "leader"}, After: object,
		}}},
		Entries: []trace.Entry{
			{Instance: "one", Call: &trace.Call{Verb: "create", Code: 201, ResourceVersion: "7", Request: body, Target: trace.Target{Resource: "configmaps", Namespace: "d", Name: "leader"}}},
			{Instance: "one", Call: &trace.Call{Verb: "create", Code: 201, ResourceVersion: "8", Target: trace.Target{Resource: "pods"}}},
		},
	}
}

func TestTheElectionOfAConfigMapIsLearntAndThenNotWaitedFor(t *testing.T) {
	k := NewKnown()
	k.Learn(takes("a"))
	if got := k.Names(); len(got) != 0 {
		t.Errorf("one holder proves no election: %q", got)
	}
	k.Learn(takes("b"))
	known := k.Names()
	if !slices.Equal(known, []string{"ConfigMap/d/leader"}) {
		t.Errorf("known are %q", known)
	}
	if !MustWait(takes("a"), nil) || MustWait(takes("a"), known) || !MustWait(takes("a"), []string{"d/leader"}) {
		t.Error("a controller waits exactly for elections that are not known")
	}
}
