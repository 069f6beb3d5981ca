// Package gobench parses the output of `go test -bench`.
package gobench

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// An Op is the average duration of one iteration of a benchmark.
type Op struct {
	// Name is without the suffix for GOMAXPROCS, such as BenchmarkX/objects=10.
	Name string
	Time time.Duration
}

// procs matches the suffix that the testing package adds to a name on more than one
// core. On one core it would also cut a benchmark's own name that ends in a dash and
// digits; none of the names read here does.
var procs = regexp.MustCompile(`-\d+$`)

// Parse reads the benchmarks' results and skips all other lines.
func Parse(output io.Reader) ([]Op, error) {
	var ops []Op
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		// Name, iterations, then pairs of value and unit.
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if fields[i+1] != "ns/op" {
				continue
			}
			ns, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
			}
			ops = append(ops, Op{procs.ReplaceAllString(fields[0], ""), time.Duration(ns)})
		}
	}
	return ops, lines.Err()
}
