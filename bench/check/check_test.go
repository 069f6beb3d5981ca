package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFaultsCountWithoutWhatIsNoRunOfOne(t *testing.T) {
	got, err := read([]byte(`{
		"runs": 62, "references": 3, "confirmations": 2, "seconds": 54,
		"tried": [{"kind": "kill-after", "pruned": 2}, {"kind": "conflict", "pruned": 0}],
		"scenarios": [{"steps": 3, "seconds": 0.5}]
	}`), 33*time.Second)
	want := series{Runs: 55, Seconds: 33, AllSeconds: 54, Pruned: 2, ReferenceMS: 500}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("read: %v\n%s", err, diff)
	}
	if rate := got.perMinute(); rate != 100 {
		t.Errorf("%v a minute, want 100", rate)
	}
}

func TestCheckWithoutARunGivesNoFigure(t *testing.T) {
	if _, err := read([]byte(`{"runs": 3, "references": 3}`), time.Second); err == nil {
		t.Error("a rate was computed without any run")
	}
}

func TestTimeBeginsWithTheFirstFault(t *testing.T) {
	at, said := began(strings.NewReader("starting 2 planes\nlearning\ninjecting faults\ninjecting faults: 2/3\n"))
	if at.IsZero() || !strings.Contains(said, "2/3") {
		t.Errorf("began %v, said %q", at, said)
	}
	if at, _ := began(strings.NewReader("starting 2 planes\n")); !at.IsZero() {
		t.Error("faults began although koboshi check did not say so")
	}
}

func TestMetricsOfTheBenchmarkAreReadByTheirUnits(t *testing.T) {
	got, err := metrics([]byte(`goos: linux
BenchmarkReconciles/workers=1-2  1000  12.80 %fewer-rec/s  11.34 %more-p99  11.18 direct-p99-ms  209.8 direct-rec/s  12.45 proxied-p99-ms  183.0 proxied-rec/s
PASS
`))
	want := []recording{{
		Name: "workers=1", DirectPerSec: 209.8, ProxiedPerSec: 183, FewerPercent: 12.8, DirectP99: 11.18, ProxiedP99: 12.45, MoreP99: 11.34,
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("metrics: %v\n%s", err, diff)
	}
	if _, err := metrics([]byte("BenchmarkReconciles/workers=1-2 10 3 direct-rec/s\n")); err == nil {
		t.Error("missing figures were read as zero")
	}
}

func TestTableSaysWhichTargetIsMissed(t *testing.T) {
	r := report{Workers: 2, Rounds: []round{{
		Koboshi: series{Runs: 61, Seconds: 60, AllSeconds: 70}, Stock: series{Runs: 4, Seconds: 30}, StockAtOnce: series{Runs: 4, Seconds: 20},
	}}, Recording: []recording{{Name: "workers=1", FewerPercent: 14, MoreP99: 26}}}
	var out bytes.Buffer
	if err := r.table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"target at least 60 on 2 cores: met", "target at least 8: MISSED", "target at most 15 % fewer: met", "target at most 25 % more: MISSED",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}
