package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentIsInOrder(t *testing.T) {
	if diff := cmp.Diff([]string{"A=1", "B=", "C=3"}, environ(map[string]string{"C": "3", "A": "1", "B": ""})); diff != "" {
		t.Error(diff)
	}
}
