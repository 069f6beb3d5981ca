package state

import "testing"

func TestARenewalChangesOnlyTheTimesOfALease(t *testing.T) {
	lease := func(holder, renewed string) Object {
		return Object{"metadata": map[string]any{"name": "l"}, "spec": map[string]any{"holderIdentity": holder, "renewTime": renewed}}
	}
	for name, tt := range map[string]struct {
		c    Change
		want bool
	}{
		"renewed":                {Change{Before: lease("a", "1"), After: lease("a", "2")}, true},
		"written without change": {Change{Before: lease("a", "1"), After: lease("a", "1")}, true},
		"another holder":         {Change{Before: lease("a", "1"), After: lease("b", "2")}, false},
		"created":                {Change{After: lease("a", "1")}, false},
		"deleted":                {Change{Before: lease("a", "1")}, false},
	} {
		if got := tt.c.Renews(); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
