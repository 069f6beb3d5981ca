package lab

import (
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestAPollingControllerIsGivenTwoRoundsBeforeItIsHelped(t *testing.T) {
	const s = time.Second
	for round, want := range map[time.Duration]time.Duration{0: 0, 10 * s: 20*s + minSpare, time.Hour: 2 * maxPatience} {
		sc := &scenario.Scenario{Rest: scenario.Rest{Round: scenario.Duration(round)}}
		if got := roundsOf(sc); got != want {
			t.Errorf("with rounds of %s, a stage takes at least %s, want %s", round, got, want)
		}
	}
}

func TestTheRoundIsTheLongestIntervalOfRegularWork(t *testing.T) {
	w := &Watched{}
	w.learn(&judge.Resting{Beats: []judge.Beat{
		{Period: 3 * time.Second}, {Period: 10 * time.Second}, {Period: 14 * time.Second, Loop: true},
	}}, 15*time.Second, &scenario.Scenario{})
	if w.Round != 10*time.Second {
		t.Errorf("the round is %s", w.Round)
	}
}
