package judge

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Resting describes what happened in a step after it had come to rest.
//
//	changes after rest ──┬─ repeated at a regular period ─▶ Beats
//	                     └─ the others ───────────────────▶ Pause: rest was only a plateau
type Resting struct {
	// Pause is the longest pause before a change of compared content; zero if there was no such
	// change.
	Pause time.Duration
	// What names the object of the last change that is not a beat.
	What string
	// Last is the time, since the start of the run, of the last change that is not known to be a
	// beat. Such a change may concern only fields that are not compared.
	Last time.Duration
	// Silence is the time since that change, or since the step came to rest.
	Silence time.Duration
	// Beats are the changes that are repeated at a regular period.
	Beats []Beat
}

// Changes reports whether anything changed after the step had come to rest.
func (r Resting) Changes() bool { return r.Last > 0 || len(r.Beats) > 0 }

// A Beat is a change that is repeated at rest.
type Beat struct {
	// Object is the canonical name of the object, and Kind its kind.
	Object, Kind string
	// Fields are the fields that change, as in a scenario's ignore list.
	Fields []string
	Period time.Duration
	Times  int
	// Loop reports whether the changes are a defect of the controller. A health check that
	// records its last time is not a defect.
	Loop bool

	writes []trace.Entry
}

const (
	// fewestBeats is the number of repetitions that show a period.
	fewestBeats = 3
	// unevenness is the factor by which the longest interval of a regular period may exceed
	// the shortest. slack is added for a busy machine.
	unevenness = 1.5
	slack      = 300 * time.Millisecond
)

// AtRest examines what happened after the step with the given index had come to rest. until is
// the end of the examined time, measured from the start of the run.
func AtRest(r *Reference, run *evidence.Run, i int, until time.Duration) Resting {
	in := newInput(r, run, nil)
	at := run.Steps[i]
	changes := in.late(at)
	beats, rest := in.beats(changes, at.RestedAt, until)
	found := Resting{Beats: beats, Silence: until - at.RestedAt}
	before := in.lastMove(at)
	for _, c := range rest {
		found.Last, found.Silence = c.At, until-c.At
		if in.ref.Mask.Alters(&c) {
			found.Pause, found.What = max(found.Pause, c.At-before), in.labels.Of(c.Ref)
			before = c.At
		}
	}
	return found
}

// late returns the changes after a step came to rest.
func (in *input) late(at evidence.Step) (changes []state.Change) {
	for _, c := range in.run.History.Changes {
		if c.Revision > at.Rested && in.moves(&c) {
			changes = append(changes, c)
		}
	}
	return changes
}

// moves reports whether a change concerns anything but bookkeeping. Fields that are not
// compared count, because a loop that writes only such fields is still a loop.
func (in *input) moves(c *state.Change) bool {
	object := c.After
	if object == nil {
		object = c.Before
	}
	return !request.IsBookkeepingObject(c.Ref.GroupKind, object)
}

// lastMove returns the time of the last change before a step came to rest.
func (in *input) lastMove(at evidence.Step) time.Duration {
	last := at.BeganAt
	for _, c := range in.run.History.Changes {
		if c.Revision > at.Began && c.Revision <= at.Rested && in.moves(&c) {
			last = max(last, c.At)
		}
	}
	return last
}

// beats separates the changes after rest that are repeated at a regular period until the end.
func (in *input) beats(changes []state.Change, rested, until time.Duration) (beats []Beat, rest []state.Change) {
	groups := map[string][]state.Change{}
	var order []string
	for _, c := range changes {
		key := in.repeats(&c)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], c)
	}
	for _, key := range order {
		group := groups[key]
		period, regular := regular(group, until)
		if key == "" || !regular || in.backsOff(group, rested) {
			rest = append(rest, group...)
			continue
		}
		beats = append(beats, in.beat(group, period))
	}
	slices.SortFunc(rest, func(a, b state.Change) int { return int(a.Revision - b.Revision) })
	return beats, rest
}

// backsOff reports whether the controller made the changes in attempts between which the pauses
// become longer and longer. All attempts since rest count: an attempt that records the same second
// as the previous attempt changes nothing, so the changes alone can look regular.
func (in *input) backsOff(changes []state.Change, rested time.Duration) bool {
	author := in.authors[changes[0].Revision]
	if author == nil {
		return false
	}
	what := describe(in.ref.Mask, author.Call)
	var tries []trace.Entry
	for i := range in.run.Entries {
		if e := &in.run.Entries[i]; isWork(e) && succeeded(e) && e.At >= rested && describe(in.ref.Mask, e.Call) == what {
			tries = append(tries, *e)
		}
	}
	return backsOff(tries)
}

// repeats returns a key that is the same for all changes of one beat, or "" if the change cannot
// belong to a beat. In a beat, either only times and numbers of a status change, or each change
// leads to the same content.
func (in *input) repeats(c *state.Change) string {
	if c.Before == nil || c.After == nil {
		return ""
	}
	var fields []string
	measured := true
	for _, l := range leaves(c.Before, c.After) {
		fields = append(fields, l.path)
		measured = measured && l.measured() && !isSpec(l.path)
	}
	if len(fields) == 0 {
		return ""
	}
	key := c.Ref.String() + " " + c.Ref.Namespace + "/" + c.Ref.Name + " " + strings.Join(fields, " ")
	if measured {
		return key
	}
	content, err := json.Marshal(in.ref.Mask.Content(in.labels, c.Ref, c.After, true))
	if err != nil {
		return ""
	}
	return key + " " + string(content)
}

func isSpec(path string) bool { return path == "spec" || strings.HasPrefix(path, "spec.") }

// regular returns the period of changes, and reports whether they recur at this period
// until the end.
func regular(changes []state.Change, until time.Duration) (period time.Duration, ok bool) {
	if len(changes) < fewestBeats {
		return 0, false
	}
	var intervals []time.Duration
	for i := range changes[1:] {
		intervals = append(intervals, changes[i+1].At-changes[i].At)
	}
	slices.Sort(intervals)
	shortest, longest := intervals[0], intervals[len(intervals)-1]
	limit := time.Duration(unevenness*float64(shortest)) + slack
	period = intervals[len(intervals)/2]
	return period, longest <= limit && until-changes[len(changes)-1].At <= limit
}

func (in *input) beat(changes []state.Change, period time.Duration) Beat {
	first := changes[0]
	b := Beat{Object: in.labels.Of(first.Ref), Kind: first.Ref.String(), Period: period, Times: len(changes)}
	loop := true
	for _, l := range leaves(first.Before, first.After) {
		b.Fields = append(b.Fields, l.path)
		loop = loop && !isHeartbeat(l.path)
	}
	sort.Strings(b.Fields)
	for _, c := range changes {
		if author := in.authors[c.Revision]; author != nil {
			b.writes = append(b.writes, *author)
		}
		loop = loop && !measures(&c)
	}
	b.Fields = slices.Compact(b.Fields)
	// The changes are a loop of the controller only if the controller itself made all of them.
	b.Loop = loop && len(b.writes) == len(changes) && sameSteps(changes)
	return b
}

// heartbeats lists parts of field names. A field with such a name records something that a
// controller repeats on purpose, such as a health check.
var heartbeats = []string{
	"heartbeat", "probe", "check", "poll", "sync", "seen", "refresh", "scan", "renew", "observ", "alive", "uptime",
	"latency", "measure", "sample", "backup", "next", "health", "ping", "duration", "usage",
}

// isHeartbeat reports whether the name of a field shows that it is updated regularly on purpose. A
// lastTransitionTime is not such a field: it must change only together with its condition.
func isHeartbeat(path string) bool {
	name := strings.ToLower(path[strings.LastIndexByte(path, '.')+1:])
	if strings.Contains(name, "transition") {
		return false
	}
	return strings.HasPrefix(name, "last") || slices.ContainsFunc(heartbeats, func(part string) bool { return strings.Contains(name, part) })
}

// measures reports whether a change contains a measured number, such as a latency. A
// number that is counted up is not measured.
func measures(c *state.Change) bool {
	for _, l := range leaves(c.Before, c.After) {
		before, isNumber := number(l.before)
		after, stillNumber := number(l.after)
		if isNumber && stillNumber && after <= before {
			return true
		}
	}
	return false
}

// sameSteps reports whether each number is always counted up by the same amount.
func sameSteps(changes []state.Change) bool {
	steps := map[string]float64{}
	for i := range changes {
		for _, l := range leaves(changes[i].Before, changes[i].After) {
			before, isNumber := number(l.before)
			after, stillNumber := number(l.after)
			if !isNumber || !stillNumber {
				continue
			}
			if step, known := steps[l.path]; known && step != after-before {
				return false
			}
			steps[l.path] = after - before
		}
	}
	return true
}

// Finding returns the finding for a beat that is a defect.
func (b *Beat) Finding(r *Reference, run *evidence.Run, step string) Finding {
	in := newInput(r, run, nil)
	what := describe(r.Mask, b.writes[0].Call)
	f := in.finding(HotLoop, step, fmt.Sprintf("at rest, the controller sends %s every %s, although nothing has changed: each time, only %s differs",
		what, rounded(b.Period), list(b.Fields)), nil)
	f.Request, f.Detail = what, requests(b.writes)
	f.ID = f.identity(what)
	return f
}

// String describes a beat.
func (b *Beat) String() string {
	return fmt.Sprintf("%s of %s, every %s", list(b.Fields), b.Object, rounded(b.Period))
}

func list(fields []string) string {
	const most = 3
	if len(fields) > most {
		return strings.Join(fields[:most], ", ") + fmt.Sprintf(" and %d more", len(fields)-most)
	}
	return strings.Join(fields, ", ")
}
