// Package checktest runs koboshi check as a Go test, with each finding as a subtest.
//
//	func TestTheControllerRecovers(t *testing.T) {
//		checktest.Run(t, checktest.Project("."), checktest.Budget(2*time.Minute))
//	}
//
// The package starts the program koboshi and reads its report. It imports only the standard
// library, so it adds neither Kubernetes nor anything else to the go.mod of a project.
package checktest

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A Subject is the controller that Run checks.
type Subject struct {
	dir     string
	command []string
}

// Project returns the kubebuilder project in the folder dir as the subject. Koboshi finds its
// manager, CRDs, RBAC, webhooks and samples. A relative dir is relative to the folder of the test.
func Project(dir string) Subject { return Subject{dir: dir} }

// Command returns, as the subject, the controller that a command starts. Flags must name
// its CRDs and scenarios.
func Command(command ...string) Subject { return Subject{dir: ".", command: command} }

// An Option changes how Run checks.
type Option func(*settings)

type settings struct {
	budget time.Duration
	seed   *uint64
	flags  []string
}

// Budget limits the time of the whole check, except the build of the manager, like --budget of
// koboshi check. Without this option, the budget is two thirds of the time that is left until the
// deadline of the test (go test -timeout). The remaining third is for the build, and for stopping
// the control planes. If the test has no deadline, there is no limit.
func Budget(limit time.Duration) Option { return func(s *settings) { s.budget = limit } }

// Seed repeats the random choices of another check. Without this option, each check makes different
// random choices, and reports their seed.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = &seed } }

// Flags adds flags of koboshi check, such as "--scenario=check/create.yaml". Relative paths in
// flags are relative to the folder of the subject.
func Flags(flags ...string) Option {
	return func(s *settings) { s.flags = append(s.flags, flags...) }
}

// reserve is the time before the deadline of the test at which a check is interrupted, so
// that the test can still report what the check printed.
const reserve = 15 * time.Second

// Run runs koboshi check. Each finding is a failed subtest, whose message ends with the
// command that replays it. If the controller cannot be checked, the test fails with the
// reason.
//
// Run starts the program that the environment variable KOBOSHI names, or koboshi on the PATH. If
// there is no such program, the test is skipped, so that the suite also runs on machines without
// Koboshi. In CI, which sets the variable CI, the test fails instead: a check that never runs must
// not look like one that finds nothing.
func Run(t *testing.T, subject Subject, options ...Option) {
	t.Helper()
	program, missing := find(os.Getenv)
	switch {
	case missing != nil && missing.skip:
		t.Skip(missing.Error())
	case missing != nil:
		t.Fatal(missing)
	}
	s := settings{}
	for _, option := range options {
		option(&s)
	}
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		if s.budget == 0 {
			s.budget = budgetWithin(time.Until(deadline))
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
		defer cancel()
	}
	got, err := check(ctx, program, subject, s)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range got.Findings {
		t.Run(f.name(), func(t *testing.T) {
			t.Helper()
			t.Error(f.message(i, got))
		})
	}
	if len(got.Findings) == 0 {
		t.Log(got.summary())
	}
}

// budgetWithin returns the default budget for a test that has some time left.
func budgetWithin(left time.Duration) time.Duration { return max(left*2/3, time.Second) }

// arguments returns the arguments of koboshi.
func (s settings) arguments(subject Subject) []string {
	args := []string{"check", "-o", "json"}
	if s.budget > 0 {
		// A budget of 0 would mean no limit.
		args = append(args, "--budget="+max(s.budget.Round(time.Second), time.Second).String())
	}
	if s.seed != nil {
		args = append(args, "--seed="+strconv.FormatUint(*s.seed, 10))
	}
	args = append(args, s.flags...)
	if len(subject.command) > 0 {
		args = slices.Concat(args, []string{"--"}, subject.command)
	}
	return args
}
