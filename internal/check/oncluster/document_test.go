package oncluster

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
)

var firstPod = Identity{Namespace: "here", Job: "job", JobUID: "uid", Pod: "00000001-0000", Index: 1}

// incompressible returns bytes that do not become smaller, the same at each call.
func incompressible(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func pieces(t *testing.T, d Document, by Identity) (all []corev1.ConfigMap) {
	t.Helper()
	made, err := piecesOf(d, by)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range made {
		all = append(all, *piece)
	}
	return all
}

func TestALargeResultArrivesInPieces(t *testing.T) {
	want := Document{Version: Version, Part: &Part{
		Report: &report.Report{Version: 1, Shard: "2/3"}, Faults: []string{"a"}, Findings: map[string][]byte{"f.json": incompressible(2 << 20)},
	}}
	all := pieces(t, want, firstPod)
	if len(all) < 2 {
		t.Fatalf("%d pieces", len(all))
	}
	for _, piece := range all {
		if size := len(piece.BinaryData[documentKey]); size > largestPiece {
			t.Errorf("%s has %d bytes", piece.Name, size)
		}
		if len(piece.OwnerReferences) != 1 || piece.OwnerReferences[0].UID != "uid" {
			t.Errorf("%s belongs to %v", piece.Name, piece.OwnerReferences)
		}
	}
	slices.Reverse(all)
	got, err := assemble(all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]Document{1: want}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAResultOfAPodThatEndedWhileItWroteIsSkipped(t *testing.T) {
	lost := pieces(t, Document{Part: &Part{Findings: map[string][]byte{"f.json": incompressible(2 << 20)}}}, firstPod)[1:]
	if got, err := assemble(lost); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	second := firstPod
	second.Pod = "00000002-0000"
	want := Document{Version: Version, Part: &Part{Faults: []string{"a"}}}
	got, err := assemble(append(lost, pieces(t, want, second)...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]Document{1: want}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAResultTakesPrecedenceOverAnError(t *testing.T) {
	second := firstPod
	second.Pod = "00000002-0000"
	failed, done := pieces(t, Document{Error: "no"}, firstPod), pieces(t, Document{Part: &Part{}}, second)
	for _, all := range [][]corev1.ConfigMap{slices.Concat(failed, done), slices.Concat(done, failed)} {
		if got, err := assemble(all); err != nil || got[1].Error != "" || got[1].Part == nil {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func TestADocumentThatCannotBeReadIsAnError(t *testing.T) {
	damaged := pieces(t, Document{Plan: &Plan{}}, firstPod)
	damaged[0].BinaryData[documentKey] = damaged[0].BinaryData[documentKey][:10]
	if got, err := assemble(damaged); err == nil {
		t.Errorf("%v", got)
	}
}

func TestShardsReadThePlanAsItWasLearnt(t *testing.T) {
	want := &Plan{Profile: "gc", Faults: []plan.Planned{{ID: "a", Scenario: "life", Fault: fault.Fault{Kind: fault.KillLost}}}, Skipped: 3}
	packed, err := pack(Document{Plan: want})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadPlan(packed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if packed, err = pack(Document{Error: "no"}); err == nil {
		_, err = ReadPlan(packed)
	}
	if err == nil {
		t.Error("a document without a plan was read")
	}
}
