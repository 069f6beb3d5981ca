package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// request is what a lab is asked; one of the fields is set.
type request struct {
	Setup *lab.Config   `json:"setup,omitempty"`
	Learn *learnRequest `json:"learn,omitempty"`
	Knock *knockRequest `json:"knock,omitempty"`
	// Control is a run like that one without its fault.
	Control *knockRequest `json:"control,omitempty"`
}

type learnRequest struct {
	Scenario  *scenario.Scenario `json:"scenario"`
	Seed      uint64             `json:"seed"`
	Generated bool               `json:"generated"`
	Trace     string             `json:"trace"`
}

type knockRequest struct {
	Lesson string      `json:"lesson"`
	Fault  fault.Fault `json:"fault"`
	Seed   uint64      `json:"seed"`
	Trace  string      `json:"trace"`
}

// reply is what it answers.
type reply struct {
	// Error is why it could not do it, Setup that the subject or the scenario is the
	// reason.
	Error   string      `json:"error,omitempty"`
	Setup   bool        `json:"setup,omitempty"`
	Lesson  *lab.Lesson `json:"lesson,omitempty"`
	Knocked *knocked    `json:"knocked,omitempty"`
}

// knocked is what a run with a fault came to.
type knocked struct {
	Findings     []judge.Finding `json:"findings,omitempty"`
	NotApplied   string          `json:"notApplied,omitempty"`
	Inconclusive string          `json:"inconclusive,omitempty"`
	Pruned       bool            `json:"pruned,omitempty"`
	Took         time.Duration   `json:"took"`
	Trace        []trace.Entry   `json:"-"`
}

// A SetupError is something about the subject or a scenario that makes a check
// impossible.
type SetupError struct{ Text string }

func (e *SetupError) Error() string { return e.Text }

func (r *reply) err() error {
	if r.Setup {
		return &SetupError{r.Error}
	}
	return errors.New(r.Error)
}

// Work is a lab's side: it answers requests until there are no more. When its
// input ends, so does what it is doing.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{lessons: map[string]*lab.Lesson{}}
	defer s.stop()
	requests, broken := requestsFrom(ctx, in, cancel)
	answers := json.NewEncoder(out)
	for r := range requests {
		answer, err := s.answer(ctx, r)
		if err != nil {
			answer = refusal(err)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := answers.Encode(answer); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	if err := broken(); !errors.Is(err, io.EOF) && ctx.Err() == nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	return nil
}

// requestsFrom are those that are read from in; ended is called after the last.
// The reason why it is the last may be asked for once they are closed.
func requestsFrom(ctx context.Context, in io.Reader, ended func()) (requests <-chan request, why func() error) {
	passed := make(chan request)
	var last error
	go func() {
		defer ended()
		defer close(passed)
		decoder := json.NewDecoder(in)
		for {
			var r request
			if last = decoder.Decode(&r); last != nil {
				return
			}
			select {
			case passed <- r:
			case <-ctx.Done():
				last = context.Cause(ctx)
				return
			}
		}
	}()
	return passed, func() error { return last }
}

type server struct {
	lab     *lab.Lab
	lessons map[string]*lab.Lesson
}

func (s *server) stop() {
	if s.lab != nil {
		_ = s.lab.Stop()
	}
}

func refusal(err error) *reply {
	var setup *lab.SetupError
	var step *lab.StepError
	var restless *lab.RestlessError
	var gone *lab.GoneError
	known := errors.As(err, &setup) || errors.As(err, &gone) || errors.As(err, &step) || errors.As(err, &restless)
	return &reply{Error: err.Error(), Setup: known}
}

func (s *server) answer(ctx context.Context, r request) (answer *reply, err error) {
	switch {
	case r.Setup != nil:
		s.lab, err = lab.New(ctx, *r.Setup)
		return &reply{}, err
	case s.lab == nil:
		return nil, errors.New("there is no plane yet")
	case r.Learn != nil:
		lesson, err := s.lab.Learn(ctx, r.Learn.Scenario, r.Learn.Seed, r.Learn.Generated)
		if err == nil && len(lesson.Findings) > 0 {
			err = writeTrace(r.Learn.Trace, lesson.Trace)
		}
		return &reply{Lesson: lesson}, err
	case r.Knock != nil:
		return s.knock(ctx, *r.Knock)
	case r.Control != nil:
		return s.control(ctx, *r.Control)
	}
	return nil, errors.New("an empty request")
}

func (s *server) knock(ctx context.Context, r knockRequest) (*reply, error) {
	lesson, err := s.lesson(r.Lesson)
	if err != nil {
		return nil, err
	}
	v, err := s.lab.Knock(ctx, lesson, r.Fault, r.Seed)
	if err != nil {
		return nil, err
	}
	if len(v.Findings) > 0 {
		err = writeTrace(r.Trace, v.Run.Entries)
	}
	return &reply{Knocked: outcome(v)}, err
}

func (s *server) control(ctx context.Context, r knockRequest) (*reply, error) {
	lesson, err := s.lesson(r.Lesson)
	if err != nil {
		return nil, err
	}
	v, err := s.lab.Control(ctx, lesson, r.Seed)
	if err != nil {
		return nil, err
	}
	return &reply{Knocked: outcome(v)}, nil
}

func outcome(v *lab.Verdict) *knocked {
	return &knocked{
		Findings: v.Findings, NotApplied: v.Run.NotApplied, Inconclusive: v.Run.Inconclusive, Took: v.Run.Took, Pruned: v.Pruned,
	}
}

// lesson reads what another lab may have learnt.
func (s *server) lesson(file string) (*lab.Lesson, error) {
	if l := s.lessons[file]; l != nil {
		return l, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	l := &lab.Lesson{}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	s.lessons[file] = l
	return l, nil
}
