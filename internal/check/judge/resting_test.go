package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// atRest returns what happened after the only step of a story came to rest. The function late makes
// the changes, and passes with each change the time since the step came to rest.
func atRest(t *testing.T, ignore []string, until time.Duration, late func(put func(at time.Duration, who, text string))) (Resting, *story) {
	t.Helper()
	sc := &scenario.Scenario{Steps: []scenario.Step{{Name: "create"}}, Ignore: ignore}
	ref := reference(t, sc, func(s *story) { s.step("create").puts(one, status(`"phase":"Progressing"`)) })
	s := tell(t).step("create").puts(one, status(`"phase":"Progressing"`))
	s.rest()
	began := s.at
	late(func(at time.Duration, who, text string) {
		s.at = began + at - 10*time.Millisecond // puts takes 10 ms
		s.puts(who, text)
	})
	s.at = began + until
	return AtRest(ref, s.end(), 0, s.at), s
}

func status(fields string) string {
	return `Widget.x default/w {"spec":{"n":1},"status":{` + fields + `}}`
}

// clock returns a time in a status.
func clock(at time.Duration) string {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(at).Format(time.RFC3339)
}

func TestChangeAtRestShowsAPause(t *testing.T) {
	got, _ := atRest(t, nil, 20*time.Second, func(put func(time.Duration, string, string)) {
		put(3*time.Second, one, status(`"phase":"Ready"`))
		put(8*time.Second, one, status(`"phase":"Complete"`))
	})
	if got.Pause < 4900*time.Millisecond || got.Pause > 5100*time.Millisecond || got.What != "Widget.x default/w" || len(got.Beats) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestSilenceAtRestShowsNothing(t *testing.T) {
	got, _ := atRest(t, nil, 15*time.Second, func(func(time.Duration, string, string)) {})
	if got.Pause != 0 || got.Last != 0 || got.Beats != nil {
		t.Errorf("%+v", got)
	}
}

func TestRolloutThatEndsIsNoBeat(t *testing.T) {
	got, _ := atRest(t, nil, 30*time.Second, func(put func(time.Duration, string, string)) {
		for i := 1; i <= 5; i++ {
			put(time.Duration(i)*2*time.Second, one, status(fmt.Sprintf(`"phase":"Progressing","ready":%d`, i)))
		}
	})
	if len(got.Beats) > 0 || got.Pause < 1900*time.Millisecond {
		t.Errorf("%+v", got)
	}
}

func TestBeatsAreLoopsOnlyIfTheyAreNoHealthChecks(t *testing.T) {
	const every = 2 * time.Second
	for _, test := range []struct {
		name, who string
		fields    func(i int) string
		beat      bool
		loop      bool
	}{
		{"a transition without a change", one, func(i int) string {
			return `"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"` + clock(time.Duration(i)*every) + `"}]`
		}, true, true},
		{"a time of the last update", one, func(i int) string { return `"updated":"` + clock(time.Duration(i)*every) + `"` }, true, true},
		{"a count of reconciles", one, func(i int) string { return fmt.Sprintf(`"reconciles":%d`, i) }, true, true},
		{"a phase that goes back and forth", one, func(i int) string { return fmt.Sprintf(`"phase":"%d"`, i%2) }, true, true},
		{"a probe", one, func(i int) string { return `"lastProbeTime":"` + clock(time.Duration(i)*every) + `"` }, true, false},
		{"a probe with a latency", one, func(i int) string {
			return fmt.Sprintf(`"lastProbeTime":"%s","millis":%d`, clock(time.Duration(i)*every), 1+i*7%5)
		}, true, false},
		{"a measured number", one, func(i int) string { return fmt.Sprintf(`"bytes":%d`, 100+i*37%11) }, true, false},
		{"another client's beat", driver, func(i int) string { return `"updated":"` + clock(time.Duration(i)*every) + `"` }, true, false},
		{"a new value each time", one, func(i int) string { return fmt.Sprintf(`"token":"t%d"`, i) }, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			const n = 8
			got, s := atRest(t, nil, n*every+time.Second, func(put func(time.Duration, string, string)) {
				for i := range n + 1 {
					put(time.Duration(i)*every+100*time.Millisecond, test.who, status(test.fields(i)))
				}
			})
			if (len(got.Beats) > 0) != test.beat {
				t.Fatalf("the beats are %+v", got.Beats)
			}
			for i := range got.Beats {
				b := &got.Beats[i]
				if b.Loop != test.loop {
					t.Errorf("loop is %t: %s", b.Loop, b)
				}
				if b.Loop {
					f := b.Finding(&Reference{Scenario: &scenario.Scenario{}}, s.run, "create")
					if f.Verdict != HotLoop || !strings.Contains(f.Sentence, "at rest, the controller sends update widgets.x default/w every") && !strings.Contains(f.Sentence, "PUT widgets.x default/w every") {
						t.Errorf("%+v", f)
					}
				}
			}
		})
	}
}

func TestIrregularWritesAreNoBeat(t *testing.T) {
	got, _ := atRest(t, nil, 14*time.Second, func(put func(time.Duration, string, string)) {
		for _, at := range []time.Duration{1, 2, 7, 8, 13} {
			put(at*time.Second, one, status(`"phase":"Progressing","updated":"`+clock(at*time.Second)+`"`))
		}
	})
	if len(got.Beats) > 0 || got.Last == 0 {
		t.Errorf("%+v", got)
	}
}

// The times come from an operator that records the current second after each failed attempt.
func TestTriesWithGrowingPausesAreNoBeatAlthoughTheirChangesLookRegular(t *testing.T) {
	failedAt := func(at time.Duration) string { return status(`"lastTransitionTime":"` + clock(at) + `"`) }
	sc := &scenario.Scenario{Steps: []scenario.Step{{Name: "create"}}}
	ref := reference(t, sc, func(s *story) { s.step("create").puts(one, failedAt(0)) })
	s := tell(t).step("create").puts(one, failedAt(0))
	s.rest()
	began := s.at
	widget, _ := object(t, status(""))
	for _, at := range []time.Duration{992, 1157, 1481, 2128, 3415, 5986} {
		s.at = began + at*time.Millisecond
		if at == 1157 || at == 3415 || at == 5986 {
			s.puts(one, failedAt(at*time.Millisecond))
		} else {
			s.call(one, "update", widget, 200, s.rev) // the same second as before
		}
	}
	s.at = began + 6500*time.Millisecond
	if got := AtRest(ref, s.end(), 0, s.at); len(got.Beats) > 0 {
		t.Errorf("%+v", got.Beats)
	}
}

func TestChangeOfIgnoredFieldsIsNoPause(t *testing.T) {
	got, _ := atRest(t, []string{"Widget.x status.phase"}, 10*time.Second, func(put func(time.Duration, string, string)) {
		put(2*time.Second, one, status(`"phase":"Ready"`))
	})
	if got.Pause != 0 {
		t.Errorf("%+v", got)
	}
}

func TestBookkeepingIsNoChange(t *testing.T) {
	got, _ := atRest(t, nil, 10*time.Second, func(put func(time.Duration, string, string)) {
		put(time.Second, one, `Event default/e {}`)
	})
	if got.Last != 0 || got.Pause != 0 {
		t.Errorf("%+v", got)
	}
}
