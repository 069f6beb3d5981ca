package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/inspect"
)

// Serve runs in the lab process. It answers requests until its input ends, and then cancels
// a run that is in progress.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
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
		if err := conceal(answer); err != nil {
			return err
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

// requestsFrom reads requests and calls ended after the last one. Once the channel is
// closed, the function why returns the error that ended the reading.
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

// server answers requests with the one lab of this process.
type server struct {
	lab     *lab.Lab
	lessons map[string]*lab.Lesson // keyed by file
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
	var unheard *lab.UnheardError
	idle := errors.As(err, &unheard)
	known := idle || errors.As(err, &setup) || errors.As(err, &gone) || errors.As(err, &step) || errors.As(err, &restless)
	answer := &reply{Error: err.Error(), Setup: known, Gone: gone != nil || idle}
	if gone != nil {
		answer.Printed = gone.LastLines()
	}
	return answer
}

// judged returns the outcome of a run. If the scenario may have caused a failure under the fault,
// for example a failure of its ledger, only this run is inconclusive.
func judged(v *lab.Verdict, err error) (*reply, error) {
	if err == nil {
		return &reply{Outcome: outcomeOf(v)}, nil
	}
	if r := refusal(err); r.Setup {
		return &reply{Outcome: &Outcome{Inconclusive: r.Error}}, nil
	}
	return nil, err
}

func (s *server) answer(ctx context.Context, r request) (answer *reply, err error) {
	switch {
	case r.Setup != nil:
		s.lab, err = lab.New(ctx, *r.Setup)
		return &reply{}, err
	case s.lab == nil:
		return nil, errors.New("the plane is not set up yet")
	case r.Learn != nil:
		lesson, err := s.learn(ctx, r.Learn)
		return taught(lesson, err, r.Learn.Trace)
	case r.Crash != nil:
		lesson, err := s.lab.Crash(ctx, r.Crash.Trials, r.Crash.Window, r.Crash.Seed)
		return taught(lesson, err, r.Crash.Trace)
	case r.Again != nil:
		lesson, err := s.lab.Again(ctx, r.Again.Trials, r.Again.Window, r.Again.Seed)
		return taught(lesson, err, r.Again.Trace)
	case r.Kept != nil:
		lesson, err := s.lab.Kept(ctx, r.Kept.Trials, r.Kept.Window, r.Kept.Seed)
		return taught(lesson, err, r.Kept.Trace)
	case r.Knock != nil:
		return s.knock(ctx, *r.Knock)
	case r.Control != nil:
		return s.control(ctx, *r.Control)
	case r.Watch != nil:
		return s.watch(ctx, *r.Watch)
	case r.Try != nil:
		tried, err := s.lab.Try(ctx, r.Try.Trials, r.Try.Window, r.Try.Within, r.Try.Seed)
		return &reply{Tried: tried}, err
	case r.Upgrade != nil:
		return s.upgrade(ctx, *r.Upgrade)
	case r.Convert != nil:
		converted, err := s.lab.Convert(ctx, r.Convert.Kind, r.Convert.Within, r.Convert.Seed)
		return &reply{Converted: converted}, err
	}
	return nil, errors.New("the request is empty")
}

// taught answers with a lesson, and stores its trace if it has findings.
func taught(lesson *lab.Lesson, err error, file string) (*reply, error) {
	if err == nil && len(lesson.Findings) > 0 {
		_ = writeTrace(file, lesson.Trace)
	}
	if err == nil && lesson.Reference != nil {
		lesson.Matched = lesson.Reference.Mask.Matched()
	}
	return &reply{Lesson: lesson}, err
}

func (s *server) learn(ctx context.Context, r *learnRequest) (*lab.Lesson, error) {
	if r.Path {
		return s.lab.LearnPath(ctx, r.Scenario, r.Seed)
	}
	return s.lab.Learn(ctx, r.Scenario, r.Seed, r.Generated)
}

func (s *server) knock(ctx context.Context, r knockRequest) (*reply, error) {
	lesson, err := s.lesson(r.Lesson)
	if err != nil {
		return nil, err
	}
	v, err := s.lab.Knock(ctx, lesson, r.Fault, r.Seed, r.Care)
	if err == nil && len(v.Findings) > 0 {
		// A finding is reported even if its trace cannot be stored, for example because the disk is
		// full.
		_ = writeTrace(r.Trace, inspect.Merge(v.Run.Entries, v.Run.History.Touched()))
	}
	reply, err := judged(v, err)
	if err == nil && reply.Outcome != nil {
		reply.Outcome.Matched = lesson.Reference.Mask.Matched()
	}
	return reply, err
}

func (s *server) control(ctx context.Context, r knockRequest) (*reply, error) {
	lesson, err := s.lesson(r.Lesson)
	if err != nil {
		return nil, err
	}
	return judged(s.lab.Control(ctx, lesson, r.Seed))
}

func (s *server) watch(ctx context.Context, r watchRequest) (*reply, error) {
	lesson, err := s.lesson(r.Lesson)
	if err != nil {
		return nil, err
	}
	watched, err := s.lab.Watch(ctx, lesson, r.Step, r.Horizon, r.Seed)
	if err == nil && len(watched.Findings) > 0 {
		err = writeTrace(r.Trace, watched.Trace)
	}
	return &reply{Watched: watched}, err
}

func (s *server) upgrade(ctx context.Context, r upgradeRequest) (*reply, error) {
	lesson, err := s.lesson(r.Lesson)
	if err != nil {
		return nil, err
	}
	upgraded, err := s.lab.Upgrade(ctx, lesson, r.Kind, r.Kill, r.Expected, r.Seed)
	if err == nil && len(upgraded.Findings) > 0 {
		_ = writeTrace(r.Trace, upgraded.Trace)
	}
	return &reply{Upgraded: upgraded}, err
}

func outcomeOf(v *lab.Verdict) *Outcome {
	return &Outcome{
		Findings: v.Findings, NotApplied: v.Run.NotApplied, Inconclusive: v.Run.Inconclusive, Strayed: v.Run.Strayed, Took: v.Run.Took, Pruned: v.Pruned, Used: v.Used,
		SecondKills: v.SecondKills,
	}
}

// lesson returns the lesson in a file that this lab or another lab has written. It reads
// each file only once.
func (s *server) lesson(file string) (*lab.Lesson, error) {
	if l := s.lessons[file]; l != nil {
		return l, nil
	}
	l, err := readLesson(file)
	if err == nil {
		s.lessons[file] = l
	}
	return l, err
}
