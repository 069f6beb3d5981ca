package scenario

import (
	"testing"
	"time"
)

func TestTheScenariosOfTwoSuitesHaveDifferentNames(t *testing.T) {
	one, other := Driven("go test ./e2e", ".", time.Minute), Driven("go test ./e2e -run TestA", ".", time.Minute)
	if err := one.Validate(); err != nil {
		t.Error(err)
	}
	if one.Name == other.Name || one.Name != Driven("go test ./e2e", ".", time.Hour).Name {
		t.Errorf("the names are %s and %s", one.Name, other.Name)
	}
}
