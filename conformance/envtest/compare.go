package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/conformance/envtest/internal/suite"
	"github.com/koboshi-dev/koboshi/conformance/envtest/internal/verdict"
)

// sides lists the names of the two sides in the order in which they run.
var sides = [2]string{verdict.Stock: "stock", verdict.Koboshi: "koboshi"}

// A comparison runs the suites on both sides.
type comparison struct {
	options
	pair     [2]string // the folders
	logs     string
	progress io.Writer
}

func (c comparison) all(ctx context.Context, suites []*suite.Suite) (*verdict.Report, error) {
	report := &verdict.Report{}
	for i, s := range suites {
		began := time.Now()
		if err := s.Build(ctx); err != nil {
			return nil, err
		}
		fmt.Fprintf(c.progress, "suite %d of %d, %s: built in %.0f s", i+1, len(suites), s.Name, time.Since(began).Seconds())
		result, err := c.one(ctx, s)
		fmt.Fprintln(c.progress)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		report.Suites = append(report.Suites, result)
	}
	return report, nil
}

// one runs a suite the requested number of times, and then repeats it while a spec differs
// and retries remain.
func (c comparison) one(ctx context.Context, s *suite.Suite) (*verdict.Suite, error) {
	result := &verdict.Suite{Name: s.Name}
	for round := 0; round < c.repeat || round < c.repeat+c.retries && len(result.Findings()) > 0; round++ {
		var runs [2]map[string]verdict.Outcome
		for side := range sides {
			began := time.Now()
			specs, err := s.Run(ctx, suite.Run{
				Assets: c.pair[side],
				Seed:   c.seed + int64(round),
				Limit:  c.timeout,
				Log:    filepath.Join(c.logs, strings.ReplaceAll(s.Name, "/", "_"), fmt.Sprintf("%s-%d.log", sides[side], round+1)),
			})
			if err != nil {
				return nil, fmt.Errorf("with %s: %w", sides[side], err)
			}
			took := time.Since(began)
			fmt.Fprintf(c.progress, ", %s %.1f s", sides[side], took.Seconds())
			result.Took[side] = append(result.Took[side], took)
			runs[side] = outcomes(specs)
		}
		result.Add(runs)
	}
	return result, nil
}

func outcomes(specs []suite.Spec) map[string]verdict.Outcome {
	run := map[string]verdict.Outcome{}
	for _, s := range specs {
		run[s.Name] = verdict.Outcome{Word: s.Outcome, Why: s.Why}
	}
	return run
}
