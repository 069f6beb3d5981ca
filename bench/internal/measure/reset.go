package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ResetBenchmark names the benchmark in Koboshi's own tests.
const ResetBenchmark = "BenchmarkReset"

// reset measures the time to return to a clean cluster.
var reset = Measure{
	Name:    "reset",
	Timeout: 10 * time.Minute,
	Figures: []Figure{
		{Name: "reset-10", Label: "reset, 10 objects", Unit: "ms", Note: "Reset: a call within the process returns a running Koboshi plane to its baseline. Stock" +
			" has no such call, so its figure is the time that a user needs to stop it, start it and install the CRD."},
		{Name: "reset-100", Label: "reset, 100 objects", Unit: "ms"},
		{Name: "reset-1000", Label: "reset, 1000 objects", Unit: "ms"},
	},
	run: func(ctx context.Context, b Bout) (Values, error) {
		if b.stock() {
			return b.restart()
		}
		return b.benchmarkReset(ctx)
	},
}

// restart measures how long stock takes to get back to a clean cluster. This time does not
// depend on the number of objects.
func (b Bout) restart() (v Values, err error) {
	used := b.environment()
	used.CRDs = []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}
	if _, err := used.Start(); err != nil {
		return nil, fmt.Errorf("starting the environment: %w", err)
	}
	began := time.Now()
	if err := used.Stop(); err != nil {
		return nil, fmt.Errorf("stopping the environment: %w", err)
	}
	clean := b.environment()
	clean.CRDs = []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}
	if _, err := clean.Start(); err != nil {
		return nil, fmt.Errorf("starting the environment again: %w", err)
	}
	took := milliseconds(time.Since(began))
	defer clean.stop(&err)
	return Values{"reset-10": took, "reset-100": took, "reset-1000": took}, nil
}

func (b Bout) benchmarkReset(ctx context.Context) (Values, error) {
	if b.ResetTest == "" {
		return nil, errors.New("this Koboshi has no " + ResetBenchmark + " to run")
	}
	cmd := exec.CommandContext(ctx, b.ResetTest, "-test.run=^$", "-test.bench=^"+ResetBenchmark+"$", "-test.benchtime=10x", "-test.timeout=9m")
	cmd.Dir = filepath.Join(b.Root, "internal", "controlplane")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("running %s: %w\n%s", strings.Join(cmd.Args[1:], " "), err, out)
	}
	v, err := resetTimes(bytes.NewReader(out))
	if err != nil {
		return nil, err
	}
	if len(v) == 0 {
		return nil, fmt.Errorf("running %s: its output has no figures:\n%s", ResetBenchmark, out)
	}
	return v, nil
}

// resetTimes reads the output of the benchmark: the time of a reset, in milliseconds,
// for each number of objects.
func resetTimes(output io.Reader) (Values, error) {
	v := Values{}
	results := benchfmt.NewReader(output, ResetBenchmark)
	for results.Scan() {
		switch r := results.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, r
		case *benchfmt.Result:
			// The name Reset/objects=10-2 has the base Reset and the parts /objects=10 and
			// -2, where 2 is the number of cores.
			_, parts := r.Name.Parts()
			seconds, timed := r.Value("sec/op")
			if len(parts) == 0 || !timed {
				continue
			}
			if objects, ok := strings.CutPrefix(string(parts[0]), "/objects="); ok {
				v["reset-"+objects] = seconds * 1000
			}
		}
	}
	return v, results.Err()
}
