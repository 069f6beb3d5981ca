package lab

import (
	"slices"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

func TestLeaseOfAnAPIServerDoesNotDelayRest(t *testing.T) {
	s := newStore(nil)
	s.begin(time.Now(), nil)
	_, before := s.seen()
	object := []byte(`{"apiVersion":"v1","kind":"Endpoints","metadata":{}}`)
	s.take(7, []storage.Commit{{Key: "/registry/masterleases/127.0.0.1", Value: object, Revision: 7}})
	if revision, moved := s.seen(); revision != 7 || !moved.Equal(before) || len(s.History().Changes) > 0 {
		t.Errorf("revision %d, moved %v after %v, changes %v", revision, moved, before, s.History().Changes)
	}
}

func TestChangeOfOnlyIgnoredFieldsDoesNotDelayRest(t *testing.T) {
	for line, delays := range map[string]bool{"ConfigMap data.v": false, "ConfigMap data.other": true} {
		s := newStore(nil)
		s.take(6, []storage.Commit{{Key: "/registry/configmaps/default/a", Value: configMap(t, "a", "1"), Revision: 6}})
		s.begin(time.Now(), []string{line})
		_, before := s.seen()
		s.take(7, []storage.Commit{{Key: "/registry/configmaps/default/a", Value: configMap(t, "a", "2"), Revision: 7}})
		if _, moved := s.seen(); moved.After(before) != delays {
			t.Errorf("with %q in the ignore list, the change delays rest: %t", line, !delays)
		}
	}
}

func TestPauseIsLearntWithTimeToSpare(t *testing.T) {
	for pause, want := range map[time.Duration]time.Duration{
		time.Second: 1500 * time.Millisecond, 8 * time.Second: 10 * time.Second, 0: 0,
	} {
		w := &Watched{}
		w.learn(&judge.Resting{Pause: pause, Silence: time.Minute}, time.Minute, &scenario.Scenario{})
		if w.Quiet != want {
			t.Errorf("a pause of %s needs a quiet time of %s, want %s", pause, w.Quiet, want)
		}
	}
}

func TestStateThatNeverStopsChangingNeedsNoQuietTime(t *testing.T) {
	w := &Watched{}
	w.learn(&judge.Resting{Pause: time.Second, Silence: 900 * time.Millisecond}, 10*time.Second, &scenario.Scenario{})
	if w.Quiet != 0 || !w.Endless {
		t.Errorf("%+v", w)
	}
}

func TestQuietTimeThatTheUserChoseIsNotExtended(t *testing.T) {
	w := &Watched{}
	w.learn(&judge.Resting{Pause: time.Second, Silence: time.Minute}, time.Minute, &scenario.Scenario{Rest: scenario.Rest{Quiet: 1}})
	if w.Quiet != 0 {
		t.Errorf("it was extended to %s", w.Quiet)
	}
}

func TestBeatsAreIgnoredAndMentionedOnce(t *testing.T) {
	beats := judge.Resting{Beats: []judge.Beat{
		{Kind: "Widget.x", Object: "Widget.x w", Fields: []string{"status.lastSeen"}},
		{Kind: "Widget.x", Object: "Widget.x w", Fields: []string{"status.updated"}, Loop: true},
	}}
	w := &Watched{}
	w.learn(&beats, time.Minute, &scenario.Scenario{})
	if want := []string{"Widget.x status.lastSeen", "Widget.x status.updated"}; !slices.Equal(w.Ignore, want) || len(w.Beats) != 1 {
		t.Errorf("ignored %v, mentioned %v", w.Ignore, w.Beats)
	}
	again := &Watched{}
	again.learn(&beats, time.Minute, &scenario.Scenario{Ignore: w.Ignore})
	if len(again.Beats) != 0 {
		t.Errorf("mentioned again: %v", again.Beats)
	}
}

func TestLoopIsReportedOnlyIfBothRunsShowIt(t *testing.T) {
	first := []judge.Finding{{ID: "a"}, {ID: "b"}}
	both := inBoth(first, []judge.Finding{{ID: "b"}, {ID: "c"}})
	if len(both) != 1 || both[0].ID != "b" || both[0].Reproduced != 2 || both[0].Attempts != 2 {
		t.Errorf("%+v", both)
	}
}
