package controlplane

import (
	"bytes"
	"errors"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
)

func TestLastErrorOfAKlogIsRememberedAndAllOfItIsPassedOn(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	last := &lastError{next: &file}
	log := clog.Klog(last, 0)
	if got := last.message(); got != "" {
		t.Errorf("before the first error: %q", got)
	}
	log.Error(errors.New("the first"), "Failed")
	log.Error(errors.New("disk full"), "Failed to start\nsecond line", "name", "x")
	log.Info("E1120 no error]")
	if got, want := last.message(), `"Failed to start\nsecond line" err="disk full" name="x"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := bytes.Count(file.Bytes(), []byte("\n")); got != 3 {
		t.Errorf("%d lines were passed on, want 3:\n%s", got, file.Bytes())
	}
}
