package loglevel

import (
	"testing"

	"go.uber.org/zap/zapcore"
)

func TestNoVerbosityReachesBodies(t *testing.T) {
	level := WithoutBodies(zapcore.Level(-100))
	for verbosity, want := range map[int]bool{0: true, 7: true, 8: false, 9: false, 20: false} {
		if got := level.Enabled(zapcore.Level(-verbosity)); got != want {
			t.Errorf("verbosity %d: %v", verbosity, got)
		}
	}
}

func TestLessVerboseStaysLessVerbose(t *testing.T) {
	if WithoutBodies(zapcore.InfoLevel).Enabled(zapcore.DebugLevel) {
		t.Error("debug is logged at level info")
	}
	if WithoutBodies(nil) != nil {
		t.Error("the default is gone")
	}
}
