package main

import (
	"strings"
	"testing"
)

const page = `# HELP rest_client_requests_total Number of HTTP requests
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="127.0.0.1:1",method="GET"} 7
rest_client_requests_total{code="200",host="127.0.0.1:1",method="PATCH"} 5
rest_client_requests_total{code="409",host="127.0.0.1:1",method="PATCH"} 1
rest_client_requests_total{code="201",host="127.0.0.1:1",method="POST"} 2
markdownview_child_writes_total{kind="ConfigMap",verb="apply"} 3
process_cpu_seconds_total 1.5
process_resident_memory_bytes 2.5e+07
go_memstats_heap_inuse_bytes 1e+07
`

func TestWritesAreAllRequestsThatAreNoReads(t *testing.T) {
	s, err := parse(page)
	if err != nil {
		t.Fatal(err)
	}
	c := s.since(sample{}, 2)
	if c.Writes != 4 || c.Reads != 3.5 || c.CPU != 0.75 || c.Kinds["apply ConfigMap"] != 1.5 || c.Kinds["status, Events and others"] != 2.5 {
		t.Errorf("%+v", c)
	}
}

func TestMetricsWithoutRequestsAreAnError(t *testing.T) {
	if _, err := parse("process_cpu_seconds_total 1\n"); err == nil {
		t.Error("no missing metric is reported")
	}
}

func TestTableFitsATerminalAndJudges(t *testing.T) {
	r := &Report{Steady: Steady{Seconds: 300, Writes: 1}}
	for _, n := range []int{1, 100, 500} {
		r.Sizes = append(r.Sizes, Size{Sites: n, Edited: Cost{Writes: float64(n), Kinds: map[string]float64{"apply PodDisruptionBudget": 1}}})
	}
	var out strings.Builder
	r.table(&out)
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("wider than 80 columns: %s", line)
		}
	}
	if got := strings.Count(out.String(), "MISSED"); got != 2 {
		t.Errorf("%d missed, want the growth of an edit and the write:\n%s", got, out.String())
	}
}

func TestBadFlagsAreRefusedWithTheReason(t *testing.T) {
	for _, args := range []string{"-n 0", "-n 10,5", "-n x", "-pages 1", "-steady 0s", "more"} {
		if err := command(t.Context(), strings.Fields(args), nil); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
}
