package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALineOfEachUsualLoggerIsParsed(t *testing.T) {
	widget := &Ref{"x.io", "Widget", "a", "w"}
	for name, c := range map[string]struct {
		text string
		want LogLine
	}{
		"zap JSON": {
			`{"level":"error","ts":"2026-11-25T10:00:00Z","msg":"Reconciler error","controller":"widget","controllerGroup":"x.io","controllerKind":"Widget","Widget":{"name":"w","namespace":"a"},"namespace":"a","name":"w","reconcileID":"id-1","error":"no"}`,
			LogLine{Level: "error", Message: "Reconciler error", Controller: "widget", Object: widget, ReconcileID: "id-1", Error: "no"},
		},
		"zap console": {
			"2026-11-25T10:00:00Z\tINFO\tsetup\tmade it\t" + `{"controller":"widget","controllerGroup":"x.io","controllerKind":"Widget","Widget":{"name":"w","namespace":"a"},"namespace":"a","name":"w","reconcileID":"id-1","size":3}`,
			LogLine{Level: "info", Message: "made it", Controller: "widget", Object: widget, ReconcileID: "id-1", Fields: map[string]any{"logger": "setup", "size": 3.0}},
		},
		"zap console in colour": {
			"2026-11-25T10:00:00Z\t\x1b[34mINFO\x1b[0m\tstarting", LogLine{Level: "info", Message: "starting"},
		},
		"klog": {
			`I1125 10:00:00.123456       1 main.go:12] "made it" controller="widget" controllerGroup="x.io" controllerKind="Widget" Widget="a/w" reconcileID="id-1" text="a \"b\" c"`,
			LogLine{Level: "info", Message: "made it", Controller: "widget", Object: widget, ReconcileID: "id-1", Fields: map[string]any{"text": `a "b" c`}},
		},
		"klog without pairs": {"E1125 10:00:00.123456       1 main.go:12] it failed", LogLine{Level: "error", Message: "it failed"}},
		"klog with an object": {
			`I1125 10:00:00.123456       1 main.go:12] "made it" controllerKind="Widget" controllerGroup="x.io" Widget={"name":"w","namespace":"a"} reconcileID="id-1"`,
			LogLine{Level: "info", Message: "made it", Object: widget, ReconcileID: "id-1"},
		},
		"slog":               {`time=2026-11-25T10:00:00Z level=WARN msg="made it" n=3`, LogLine{Level: "warning", Message: "made it", Fields: map[string]any{"n": "3"}}},
		"cluster-scoped":     {`{"msg":"m","controllerKind":"Widget","Widget":{"name":"w"},"name":"w","reconcileID":"i"}`, LogLine{Message: "m", Object: &Ref{Kind: "Widget", Name: "w"}, ReconcileID: "i"}},
		"a level below info": {"2026-11-25T10:00:00Z\tLEVEL(-5)\tReconciling\t{}", LogLine{Level: "debug", Message: "Reconciling"}},
		"plain":              {"hello world", LogLine{Message: "hello world"}},
		"damaged JSON":       {`{"msg":`, LogLine{Message: `{"msg":`}},
		"empty":              {"", LogLine{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ParseLine(c.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
