package gobench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheTimeOfEachBenchmarkIsRead(t *testing.T) {
	const output = `goos: linux
goarch: amd64
pkg: example.com/plane
BenchmarkReset/objects=10-2         	      10	   5123456 ns/op
BenchmarkReset/objects=100-2        	      10	  15123456.5 ns/op	  1024 B/op	      12 allocs/op
Benchmarks are fun, says a log line
BenchmarkReset/objects=1000-2       	      10	        99.00 objects/op	 151234560 ns/op
BenchmarkOneCore 	 1000000	      12.9 ns/op
--- BENCH: BenchmarkReset
PASS
ok  	example.com/plane	12.345s
`
	got, err := Parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	want := []Op{
		{"BenchmarkReset/objects=10", 5123456 * time.Nanosecond},
		{"BenchmarkReset/objects=100", 15123456 * time.Nanosecond},
		{"BenchmarkReset/objects=1000", 151234560 * time.Nanosecond},
		{"BenchmarkOneCore", 12 * time.Nanosecond},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFigureThatIsNoNumberIsRefused(t *testing.T) {
	if got, err := Parse(strings.NewReader("BenchmarkX-2 10 fast ns/op\n")); err == nil {
		t.Errorf("read as %v", got)
	}
}

func TestNoBenchmarkIsNoError(t *testing.T) {
	got, err := Parse(strings.NewReader("testing: warning: no tests to run\nPASS\n"))
	if err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
}
