package lab

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/inputs"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestWhatAControllerDidNotReactToIsRepeatedWithMoreTime(t *testing.T) {
	for name, of := range map[string]struct {
		outcomes []inputs.Outcome
		fails    error
		want     []bool // whether each repetition is patient
	}{
		"the effect stays":                   {[]inputs.Outcome{inputs.Kept}, nil, []bool{false}},
		"the effect is undone":               {[]inputs.Outcome{inputs.Effect}, nil, []bool{false}},
		"no reaction":                        {[]inputs.Outcome{inputs.Inert, inputs.Kept}, nil, []bool{false, true}},
		"only a line of output":              {[]inputs.Outcome{inputs.Told, inputs.Kept}, nil, []bool{false, true}},
		"no reaction to the second value":    {[]inputs.Outcome{inputs.Once, inputs.Effect}, nil, []bool{false, true}},
		"no reaction within a long time":     {[]inputs.Outcome{inputs.Inert, inputs.Inert}, nil, []bool{false, true}},
		"the runs could not even be started": {[]inputs.Outcome{""}, errors.New("no plane"), []bool{false}},
	} {
		var patient []bool
		_, err := patiently(func(is bool) (*Lesson, inputs.Outcome, error) {
			patient = append(patient, is)
			return &Lesson{}, of.outcomes[len(patient)-1], of.fails
		})
		if !errors.Is(err, of.fails) || !slices.Equal(patient, of.want) {
			t.Errorf("%s: the repetitions were patient: %v (%v), want %v", name, patient, err, of.want)
		}
	}
}

func TestAControllerAtWorkGetsMoreTimeToReact(t *testing.T) {
	const s = time.Second
	for name, of := range map[string]struct {
		waited, asked time.Duration
		polls         bool
		want          time.Duration
	}{
		"it has just begun":            {0, 5 * s, false, considerChange},
		"it is idle":                   {2 * s, 2 * s, false, considerChange - 2*s},
		"it is at work":                {2 * s, s / 10, false, stillWorking - s/10},
		"it has been at work for long": {14 * s, s / 5, false, stillWorking - s/5},
		"it never stops":               {15 * s, s / 10, false, considerChange - 15*s},
		"it has no watches, so its requests are polls": {2 * s, s / 10, true, considerChange - 2*s},
	} {
		if got := consider(considerChange, of.waited, of.asked, of.polls); got != of.want {
			t.Errorf("%s: %v, want %v", name, got, of.want)
		}
	}
}

func TestAPatientRunWaitsForAFullRoundOfWork(t *testing.T) {
	const s = time.Second
	for name, of := range map[string]struct {
		full           bool
		waited, silent time.Duration
		want           time.Duration
	}{
		"it has just begun":                      {false, 0, 0, slowReaction},
		"it made one request, and then no other": {false, 35 * s, 33 * s, -3 * s},
		"it is in its second round":              {false, 35 * s, 10 * s, 20 * s},
		"it has made a full round":               {true, 35 * s, s, -5 * s},
		"it has made full rounds quickly":        {true, 5 * s, s, 25 * s},
		"its round never ends":                   {false, 85 * s, s, 5 * s},
	} {
		if got := mayReact(of.full, of.waited, of.silent); got != of.want {
			t.Errorf("%s: %v, want %v", name, got, of.want)
		}
	}
}

func TestOnlySomeStepsOfTrialsArePatient(t *testing.T) {
	r := &run{trials: (&scenario.Trials{}).PatientIn("mark"), current: "mark"}
	if !r.isPatient() {
		t.Error("the named step is not patient")
	}
	if r.current = "undo-mark"; r.isPatient() {
		t.Error("another step is patient as well")
	}
	if r.patient = true; !r.isPatient() {
		t.Error("a step of a patient run is not patient")
	}
}
