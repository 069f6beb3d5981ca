package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

var (
	good = s3store.Result{Reason: s3store.ReasonSucceeded, Message: "fine", Latency: 1500 * time.Microsecond}
	bad  = s3store.Result{Reason: s3store.ReasonAccessDenied, Message: "denied"}
)

func TestTransitionTimesMoveOnlyOnTransitions(t *testing.T) {
	var conditions []metav1.Condition
	at := noon
	for i, step := range []struct {
		finding finding
		changed bool
	}{
		{found("A", "a"), true},
		{found("B", "b"), false},
		{finding{metav1.ConditionFalse, "C", "c"}, true},
		{finding{metav1.ConditionFalse, "D", "d"}, false},
		{unknown("E", "e"), true},
	} {
		at = at.Add(time.Minute)
		before := noon
		if len(conditions) > 0 {
			before = conditions[0].LastTransitionTime.Time
		}
		if got := set(&conditions, "X", int64(i), at, step.finding); got != step.changed {
			t.Errorf("step %d: changed %v", i, got)
		}
		want := before
		if step.changed {
			want = at
		}
		if got := conditions[0]; !got.LastTransitionTime.Time.Equal(want) || got.ObservedGeneration != int64(i) || got.Reason != step.finding.reason {
			t.Errorf("step %d: %+v, want the transition at %v", i, got, want)
		}
	}
}

func TestReadyCarriesTheReasonThatStandsInTheWay(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: kind + string(status)}
	}
	const yes, no, maybe = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for _, tc := range []struct {
		synced, healthy, want metav1.ConditionStatus
		reason                string
	}{
		{yes, yes, yes, reasonAvailable},
		{no, yes, no, "SyncedFalse"},
		{yes, no, no, "HealthyFalse"},
		{no, no, no, "SyncedFalse"},
		{yes, maybe, maybe, "HealthyUnknown"},
		{maybe, no, no, "HealthyFalse"},
		{maybe, yes, maybe, "SyncedUnknown"},
	} {
		got := summarise([]metav1.Condition{
			condition(storagev1.ConditionHealthy, tc.healthy), condition(storagev1.ConditionSynced, tc.synced),
		}, storagev1.ConditionSynced, storagev1.ConditionHealthy)
		if got.status != tc.want || got.reason != tc.reason {
			t.Errorf("Synced %s, Healthy %s: %s %s, want %s %s", tc.synced, tc.healthy, got.status, got.reason, tc.want, tc.reason)
		}
	}
}

// verdicts applies the results of probes to the thresholds, one by one, and returns the
// condition Healthy after each result.
func verdicts(limit thresholds, results ...s3store.Result) []string {
	var conditions []metav1.Condition
	var probe *storagev1.ProbeStatus
	var all []string
	for _, result := range results {
		var before *metav1.Condition
		if len(conditions) > 0 {
			before = &conditions[0]
		}
		probe = noteProbe(probe, result, noon, limit)
		if verdict := health(before, probe, result, limit); verdict != nil {
			set(&conditions, storagev1.ConditionHealthy, 1, noon, *verdict)
		}
		all = append(all, string(conditions[0].Status))
	}
	return all
}

func TestThresholdsHoldTheVerdictUntilEnoughProbesAgree(t *testing.T) {
	got := verdicts(thresholds{failures: 3, successes: 2}, good, bad, bad, good, bad, bad, bad, good, bad, good, good)
	want := []string{"True", "True", "True", "True", "True", "True", "False", "False", "False", "False", "True"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"False", "True", "False"}, verdicts(thresholds{1, 1}, bad, good, bad)); diff != "" {
		t.Errorf("without thresholds: %s", diff)
	}
}

func TestOnlyFailureAndItsEndAreNews(t *testing.T) {
	const yes, no, maybe = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for _, tc := range []struct {
		before, verdict metav1.ConditionStatus
		want            bool
	}{
		{"", yes, false}, {"", no, true},
		{maybe, yes, false}, {maybe, no, true},
		{yes, yes, false}, {yes, no, true},
		{no, yes, true}, {no, no, false},
	} {
		var before *metav1.Condition
		if tc.before != "" {
			before = &metav1.Condition{Status: tc.before}
		}
		if got := news(before, tc.verdict); got != tc.want {
			t.Errorf("from %q to %s: %v", tc.before, tc.verdict, got)
		}
	}
}

func TestAProbeThatFindsWhatTheLastOneFoundIsNotWritten(t *testing.T) {
	limit := thresholds{3, 3}
	status := storagev1.StorageBucketStatus{}
	at := noon
	for range 4 {
		at = at.Add(time.Minute)
		status.Probe = noteProbe(status.Probe, good, at, limit)
	}
	again := status.DeepCopy()
	slower := good
	slower.Latency = time.Second
	again.Probe = noteProbe(again.Probe, slower, at.Add(time.Minute), limit)
	if worthWriting(&status, again, time.Hour) {
		t.Error("it would be written")
	}
	if worthWriting(&status, again, 0) {
		t.Error("it would be written although there is no heartbeat")
	}
	again.Probe = noteProbe(again.Probe, good, at.Add(time.Hour), limit)
	if !worthWriting(&status, again, time.Hour) {
		t.Error("the heartbeat would not be written")
	}
	again = status.DeepCopy()
	again.Probe = noteProbe(again.Probe, bad, at, limit)
	if !worthWriting(&status, again, 0) {
		t.Error("a failure would not be written")
	}
}

func TestLatencyIsRoundedUpAndAbsentWithoutAnAnswer(t *testing.T) {
	for in, want := range map[time.Duration]int64{time.Nanosecond: 1, time.Millisecond: 1, 1500 * time.Microsecond: 2} {
		if got := milliseconds(in); got == nil || *got != want {
			t.Errorf("%v: %v, want %d", in, got, want)
		}
	}
	if got := milliseconds(0); got != nil {
		t.Errorf("no answer: %d", *got)
	}
}
