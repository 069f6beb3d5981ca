package instance

import (
	"strings"
	"testing"
)

func TestAnExitForLackOfAVariableNamesTheFlag(t *testing.T) {
	err := &GoneError{Times: 9, Code: 1, Said: "exit status 1", Printed: "starting\nfatal: VAULT_ADDR is not set\nexit status 1\n"}
	if got := err.Error(); !strings.Contains(got, "--env VAULT_ADDR=VALUE") || strings.Contains(got, "by hand") {
		t.Errorf("%s", got)
	}
	if got := err.LastLines(); got != "starting\nfatal: VAULT_ADDR is not set\nexit status 1" {
		t.Errorf("the last lines are %q", got)
	}
	err.Printed = "exit status 1\n"
	if got := err.Error(); !strings.Contains(got, "by hand") || err.LastLines() != "" {
		t.Errorf("%s, %q", got, err.LastLines())
	}
}
