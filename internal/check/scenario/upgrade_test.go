package scenario

import "testing"

func TestAnUpgradeBeginsWithTheStepsBeforeTheFirstDeletion(t *testing.T) {
	create, change, remove := Step{Name: "create"}, Step{Name: "change"}, Step{Name: "delete", Delete: &Delete{}}
	down, again := Step{Name: "down", WhileDown: true}, Step{Name: "again", SameAs: "create"}
	tests := []struct {
		name      string
		generated bool
		steps     []Step
		want      int
	}{
		{"story", false, []Step{create, change, remove, again}, 2},
		{"story", false, []Step{create, down, change}, 1},
		{"story", false, []Step{remove, create}, 0},
		{"web-life", true, []Step{create, remove}, 1},
		{"web-change", true, []Step{create, change}, 0},
	}
	for _, test := range tests {
		s := &Scenario{Name: test.name, Steps: test.steps}
		got := 0
		if part := s.Founding(test.generated); part != nil {
			got = len(part.Steps)
		}
		if got != test.want || len(s.Steps) != len(test.steps) {
			t.Errorf("%s, generated %t, %d steps: got %d, want %d", test.name, test.generated, len(test.steps), got, test.want)
		}
	}
}
