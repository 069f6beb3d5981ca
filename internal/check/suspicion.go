package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	// wanted is the number of runs of the same fault that must show a finding, out of at
	// most maxAttempts. wanted and maxAttempts include the first run. Not every run has to
	// show the finding, because a race does not occur every time, especially on a busy
	// machine.
	wanted, maxAttempts = 3, 5
	// controls is the number of conclusive runs without the fault, none of which may show
	// the finding. They are made in at most maxControls runs.
	controls, maxControls = 2, 5
	// maxSilent is the number of repetitions that may give no result, in addition to
	// maxAttempts.
	maxSilent = 3
	// cleanRuns is the number of runs in a row without a finding after which a saved finding is
	// considered fixed. Before that, a race may simply not have occurred.
	cleanRuns = 3
)

// suspicions turns suspicions into findings by running their faults again. It skips a suspicion
// that resembles a confirmed finding, and defers a suspicion that resembles one whose confirmation
// is in progress.
type suspicions struct {
	*outcome
	enough func() // ends the check

	mu    sync.Mutex
	alike map[string]*alike
	found []judge.Finding
	open  []suspicion // their confirmation was interrupted
	// lasting holds the keys of what stayed wrong although the controller had much time to recover, late the
	// scenarios in which the controller recovered late, and unwaited those in which there was no time to learn
	// whether it recovers from a refusal.
	lasting, late, unwaited map[string]bool
	// secondKills holds the kills during recoveries that are worth a run, by scenario.
	secondKills map[string][]fault.SecondKill

	runs pace // of the runs with a fault
	idle *idle
}

func newSuspicions(o *outcome) *suspicions {
	return &suspicions{outcome: o, enough: func() {}, idle: newIdle(), lasting: map[string]bool{}, late: map[string]bool{}, unwaited: map[string]bool{}}
}

// tooLate reports whether it is too late to begin a fault, because there would be no time to
// confirm its finding. The confirmation takes two runs with the fault and two without, each pair at
// the same time if there is more than one lab, and half of that time again, because these runs
// observe the controller for longer. The parameter most limits the time that is kept for the
// confirmation; 0 means that there is no budget.
func (s *suspicions) tooLate(left, most time.Duration, labs int) bool {
	pairs := 2
	if labs == 1 {
		pairs = 4
	}
	return most > 0 && left < min(most, s.runs.estimate(pairs)*3/2)
}

// A suspicion is an unconfirmed finding of one run.
type suspicion struct {
	planned plan.Planned
	finding judge.Finding
	entries []trace.Entry
}

// alike is a group of suspicions with the same symptom: one suspicion is being confirmed or
// has been confirmed, and the others wait for the result.
type alike struct {
	confirmed bool
	at        int // the index of the confirmed finding
	others    []suspicion
}

// try runs a scenario with one fault, and pursues each finding of that run. ran reports
// whether the fault was run, even if its findings could not be pursued. tail is passed to
// the lab.
func (s *suspicions) try(ctx context.Context, w *fleet.Worker, p plan.Planned, tail bool) (ran bool, err error) {
	defer s.idle.work()()
	if s.isUseless(p) {
		return false, nil
	}
	began := time.Now()
	out, err := w.Knock(ctx, s.lessons[p.Scenario], p.Fault, s.Seed, lab.Care{Tail: tail})
	if err != nil {
		return false, err
	}
	s.runs.add(time.Since(began), 1)
	if s.foundBefore(p) {
		out = s.again(ctx, w, p, out)
	}
	s.tally.ran(p, out)
	s.needed(out.Used)
	s.matched(p.Scenario, out.Matched)
	s.recovered(p, out.SecondKills)
	s.Observer.Done(p.Fault.Kind, time.Since(began))
	complete := true
	for i, f := range out.Findings {
		settled, err := s.pursue(ctx, w, suspicion{p, f, out.Trace})
		if err != nil {
			s.giveUp(p, out, i)
			return true, err
		}
		complete = complete && settled
	}
	if complete {
		s.Journal.Ran(recordOf(p, out))
	}
	return true, nil
}

// foundBefore reports whether a fault is tried because an earlier check found something
// with it.
func (s *suspicions) foundBefore(p plan.Planned) bool {
	return !s.Only && slices.ContainsFunc(s.First[p.Scenario], func(f fault.Fault) bool { return fault.Same(f, p.Fault) })
}

// again repeats a run in which a saved finding did not occur. If the finding does not occur in the
// other runs either, the finding is considered fixed. again returns the run that determines the
// result.
func (s *suspicions) again(ctx context.Context, w *fleet.Worker, p plan.Planned, out *fleet.Outcome) *fleet.Outcome {
	for n := 1; isClean(out); n++ {
		if n == cleanRuns {
			s.mu.Lock()
			s.result.Recovered = append(s.result.Recovered, p)
			s.mu.Unlock()
			return out
		}
		next, err := w.Knock(ctx, s.lessons[p.Scenario], p.Fault, s.Seed, lab.Care{Tail: true})
		if err != nil {
			return out // the first run still counts
		}
		s.tally.confirmed()
		if !isClean(next) && len(next.Findings) == 0 {
			return out
		}
		out = next
	}
	return out
}

func isClean(out *fleet.Outcome) bool {
	return out.Inconclusive == "" && out.NotApplied == "" && len(out.Findings) == 0
}

// giveUp stores the findings of a run that could not be pursued, beginning with the finding at the
// given index.
func (s *suspicions) giveUp(p plan.Planned, out *fleet.Outcome, from int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range out.Findings[from:] {
		s.open = append(s.open, suspicion{p, f, out.Trace})
	}
}

// end gives up all suspicions that have not been confirmed, for the given reason.
func (s *suspicions) end(why string) {
	s.mu.Lock()
	open := s.open
	for _, same := range s.alike {
		if !same.confirmed {
			open = append(open, same.others...)
		}
	}
	s.open, s.alike = nil, nil
	s.mu.Unlock()
	for _, like := range open {
		f := like.finding
		f.Seed, f.Attempts, f.Reproduced = s.Seed, max(f.Attempts, 1), max(f.Reproduced, 1)
		s.doubtful(like.planned, like.entries, f, fmt.Sprintf("%s was found, but %s before it was confirmed", strings.ToLower(string(f.Verdict)), why))
	}
}

// pursue tries to confirm a suspicion, unless a similar suspicion has been confirmed or is being
// confirmed. If the attempt fails, pursue tries the next similar suspicion, because one fault may
// cause a symptom only now and then, while another fault causes it every time. settled reports
// whether the suspicion itself has been confirmed or rejected.
func (s *suspicions) pursue(ctx context.Context, w *fleet.Worker, next suspicion) (settled bool, err error) {
	if s.needsNoFault(next.finding) {
		return true, nil
	}
	key := likeness(next.finding)
	mine := s.first(key, next)
	if !mine {
		return s.isConfirmed(key), nil
	}
	for own := true; mine; next, mine = s.next(key) {
		confirmed, err := s.confirm(ctx, w, next)
		if err != nil {
			if !own {
				s.mu.Lock()
				s.open = append(s.open, next)
				s.mu.Unlock()
			}
			return !own, err
		}
		if confirmed {
			return true, nil
		}
		own = false
	}
	return true, nil
}

// needsNoFault reports whether the report already has the finding without a fault, and counts the
// fault there. A finding that names neither a difference nor the place of a panic may have another
// cause in the same step, such as another loop or another missing permission.
func (s *suspicions) needsNoFault(f judge.Finding) bool {
	if f.Frame == "" && len(f.Differences) == 0 {
		return false
	}
	s.outcome.mu.Lock()
	defer s.outcome.mu.Unlock()
	known := s.result.Report.Findings
	i := slices.IndexFunc(known, func(other judge.Finding) bool { return other.Fault == nil && symptom(other) == symptom(f) })
	if i >= 0 {
		known[i].AlsoBy++
	}
	return i >= 0
}

func (s *suspicions) isConfirmed(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alike[key] != nil && s.alike[key].confirmed
}

// confirm runs the fault of a suspicion again and reports whether the finding is
// confirmed.
func (s *suspicions) confirm(ctx context.Context, w *fleet.Worker, like suspicion) (bool, error) {
	p, f := like.planned, like.finding
	f.Seed, f.Attempts, f.Reproduced = s.Seed, 1, 1
	key, likelyLate := likeness(f), s.likelyLate(p)
	if p.Fault.Kind.Refuses() && f.Verdict == judge.DivergedUntilRestart && !s.stays(laterKey(p.Scenario, &f)) && s.lacksTime(p) {
		s.mu.Lock()
		s.unwaited[p.Scenario] = true
		s.mu.Unlock()
		s.doubtful(p, like.entries, f, strings.ToLower(string(f.Verdict))+" was found, but"+strings.TrimPrefix(noTime, ";"))
		return false, nil
	}
	if likelyLate && s.isLate(ctx, w, p, &f, key) {
		return true, nil
	}
	for silent := 0; f.Reproduced < wanted && wanted-f.Reproduced <= maxAttempts-f.Attempts && silent <= maxSilent; {
		outs, err := s.idle.together(ctx, w, wanted-f.Reproduced, func(ctx context.Context, w *fleet.Worker, _ int) (*fleet.Outcome, error) {
			return w.Knock(ctx, s.lessons[p.Scenario], p.Fault, s.Seed, lab.Care{Tail: true})
		})
		if err != nil {
			return false, err
		}
		for _, out := range outs {
			s.tally.confirmed()
			if len(out.Findings) == 0 && !isClean(out) {
				silent++ // this run proves nothing
				continue
			}
			f.Attempts++
			if slices.ContainsFunc(out.Findings, func(other judge.Finding) bool { return other.Same(f) }) {
				f.Reproduced++
			}
		}
	}
	verdict := strings.ToLower(string(f.Verdict))
	if f.Reproduced < wanted {
		s.doubtful(p, like.entries, f, fmt.Sprintf("%s was found in %d of %d runs", verdict, f.Reproduced, f.Attempts))
		return false, nil
	}
	alone, err := s.withoutFault(ctx, w, p.Scenario, f)
	if err != nil {
		return false, err
	}
	if alone {
		s.doubtful(p, like.entries, f, fmt.Sprintf("%s was found, but it also occurs without any fault", verdict))
		return false, nil
	}
	if !likelyLate && s.isLate(ctx, w, p, &f, key) {
		return true, nil
	}
	s.keep(key, f, like.entries)
	return true, nil
}

// withoutFault runs the scenario without the fault, and reports whether the finding occurs.
// These control runs are necessary, because the three reference runs may have been equal by
// chance. Control runs that differ from the reference in the same places show the finding. A
// control run that is inconclusive for another reason is repeated, and is no reason to doubt a
// finding.
//
// NOT RESTORED needs no control runs. Without the fault, no other client changes the object, so these runs could
// not show it.
func (s *suspicions) withoutFault(ctx context.Context, w *fleet.Worker, scenario string, f judge.Finding) (alone bool, err error) {
	if f.Verdict == judge.NotRestored {
		return false, nil
	}
	conclusive, why := 0, ""
	var strayed []evidence.Strayed
	for made := 0; made < maxControls && conclusive < controls; {
		outs, err := s.idle.together(ctx, w, min(controls-conclusive, maxControls-made), func(ctx context.Context, w *fleet.Worker, i int) (*fleet.Outcome, error) {
			return w.Control(ctx, s.lessons[scenario], s.Seed+uint64(made+i)+1)
		})
		if err != nil {
			return false, err
		}
		made += len(outs)
		for _, out := range outs {
			s.tally.confirmed()
			if out.Strayed != nil {
				strayed = append(strayed, *out.Strayed)
			}
			if out.Inconclusive != "" {
				why = out.Inconclusive
				continue
			}
			conclusive++
			alone = alone || slices.ContainsFunc(out.Findings, func(other judge.Finding) bool { return symptom(other) == symptom(f) })
		}
		if alone || len(strayed) > 0 && f.AlsoWithout(strayed) {
			return true, nil
		}
	}
	if conclusive < controls {
		s.note(fmt.Sprintf("scenario %s is unsteady: only %d of %d runs without a fault, which were made to confirm a finding, were conclusive: %s",
			scenario, conclusive, maxControls, why))
	}
	return false, nil
}

// keep adds a confirmed finding, whose suspicions have the given key.
func (s *suspicions) keep(key string, f judge.Finding, entries []trace.Entry) {
	f.FoundAfterRuns, f.FoundAfterSeconds = s.tally.runs(), time.Since(s.began).Seconds()
	s.kept(&f, entries)
	s.Journal.Found(f)
	s.mu.Lock()
	same := s.alike[key]
	same.confirmed, same.at = true, len(s.found)
	f.AlsoBy = len(same.others)
	if key != likeness(f) { // it has become a remark
		for _, other := range same.others {
			s.tally.onlyLate(other.planned)
		}
	}
	s.found = append(s.found, f)
	s.mu.Unlock()
	if s.StopAtFirst && !f.Verdict.IsRemark() {
		s.enough()
	}
}

// first reports whether a suspicion is the first one with the key. A later suspicion is
// only counted if the first one has been confirmed; otherwise, it is queued behind the
// first one.
func (s *suspicions) first(key string, like suspicion) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alike == nil {
		s.alike = map[string]*alike{}
	}
	same := s.alike[key]
	if same == nil {
		s.alike[key] = &alike{}
		return true
	}
	if !same.confirmed {
		same.others = append(same.others, like)
		return false
	}
	s.found[same.at].AlsoBy++
	if s.found[same.at].Verdict.IsRemark() && !like.finding.Verdict.IsRemark() {
		s.tally.onlyLate(like.planned)
	}
	return false
}

// next returns the next suspicion with the key, after the previous one was not confirmed.
// If no suspicion is left, next deletes the group.
func (s *suspicions) next(key string) (suspicion, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := s.alike[key]
	if len(same.others) == 0 {
		delete(s.alike, key)
		return suspicion{}, false
	}
	like := same.others[0]
	same.others = same.others[1:]
	return like, true
}

// likeness returns the same key for findings that a user would consider the same. Apart from the
// symptom, it only matters whether another client meddled: a controller may be right to ignore
// that, and wrong to do the same after a failed request. If a controller does not restore the labels
// or the owners of several objects of one kind, these are the same.
func likeness(f judge.Finding) string {
	if f.Verdict == judge.NotRestored && f.Fault != nil && f.Fault.EditsMetadata() {
		kind, _, _ := strings.Cut(f.Fault.Target, "/")
		return strings.Join([]string{string(f.Verdict), kind, f.Fault.Field}, "\x00")
	}
	return fmt.Sprint(symptom(f), "\x00", f.Fault != nil && f.Fault.Kind.Meddles())
}

// symptom returns the same key for findings with the same verdict and the same differences, and for
// panics at the same place.
func symptom(f judge.Finding) string {
	if f.Frame != "" {
		return string(f.Verdict) + "\x00" + f.Frame
	}
	parts := []string{string(f.Verdict)}
	for _, d := range f.Differences {
		parts = append(parts, d.Object, d.Path)
	}
	if len(f.Differences) == 0 {
		parts = append(parts, f.Scenario, f.Step)
	}
	return strings.Join(parts, "\x00")
}
