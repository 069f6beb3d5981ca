package measure

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheTimeOfAResetIsReadForEachNumberOfObjects(t *testing.T) {
	const output = `goos: linux
goarch: amd64
pkg: example.com/plane
BenchmarkReset
BenchmarkReset/objects=10
BenchmarkReset/objects=10-2         	      10	   5000000 ns/op
BenchmarkReset/objects=100-2        	      10	  15500000 ns/op	  1024 B/op	      12 allocs/op
BenchmarkReset/objects=1000         	      10	        99.00 objects/op	 151000000 ns/op
BenchmarkReset/idle-2               	      10	   1000000 ns/op
--- BENCH: BenchmarkReset
PASS
ok  	example.com/plane	12.345s
`
	got, err := resetTimes(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	want := Values{"reset-10": 5, "reset-100": 15.5, "reset-1000": 151}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
}

func TestAFigureThatIsNoNumberIsRefused(t *testing.T) {
	if got, err := resetTimes(strings.NewReader("BenchmarkReset/objects=10-2 10 fast ns/op\n")); err == nil {
		t.Errorf("read as %v", got)
	}
}
