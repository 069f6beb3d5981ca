package inject

import "testing"

func TestAFaultHoldsUntilTheRestOfTheCurrentStepOrLonger(t *testing.T) {
	i := New(Config{})
	for _, c := range []struct {
		step, until              string
		holds, untilRest, longer bool
	}{
		{"create", "", false, false, false},
		{"create", "create", true, true, false},
		{"create", "change", true, false, true},
	} {
		i.Enter(c.step)
		i.held = c.until
		if i.Holds() != c.holds || i.HoldsUntilRest() != c.untilRest || i.HoldsLonger() != c.longer {
			t.Errorf("in step %s, until the rest of %q: %v, %v, %v", c.step, c.until, i.Holds(), i.HoldsUntilRest(), i.HoldsLonger())
		}
	}
}
