package inspect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Level is the importance of a notice.
type Level string

// The levels.
const (
	Warning Level = "warning"
	Note    Level = "note"
)

// Notice is something unusual that needs no question to be found. Kind is one of:
//
//	field     the same few fields change with each write, and nothing else does
//	no-op     writes that change nothing
//	fight     the values of a field alternate
//	conflict  writes to outdated versions
//	refused   a missing permission
type Notice struct {
	Kind   string `json:"kind"`
	Level  Level  `json:"level"`
	Object Ref    `json:"object"`
	// Fields holds the paths of the fields that the notice is about.
	Fields []string `json:"fields,omitempty"`
	Text   string   `json:"text"`
	Count  int      `json:"count"`
	// First and Last are the times of the first and of the last occurrence.
	First time.Duration `json:"first"`
	Last  time.Duration `json:"last"`
	// Seq is the number of the entry of the last occurrence.
	Seq int64 `json:"seq"`

	shown bool
}

type noticeKey struct {
	kind   string
	object Ref
	detail string
}

// notice counts an occurrence. Once there are enough occurrences, the notice is shown, and describe
// fills it in.
func (s *Session) notice(key noticeKey, w *Write, enough int, describe func(*Notice)) {
	n := s.notices[key]
	if n == nil {
		n = &Notice{Kind: key.kind, Object: key.object, First: w.At}
		s.notices[key] = n
	}
	n.Count++
	n.Last, n.Seq = w.At, w.Seq
	if n.Count >= enough {
		n.shown = true
		describe(n)
	}
}

// Notices returns what is unusual: warnings first, and the most recent first.
func (s *Session) Notices() []*Notice {
	all := []*Notice{}
	for _, n := range s.notices {
		if n.shown {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *Notice) int {
		switch {
		case a.Level != b.Level:
			return -strings.Compare(string(a.Level), string(b.Level))
		case a.Last != b.Last:
			return int(b.Last - a.Last)
		}
		return strings.Compare(a.Text, b.Text)
	})
	return all
}

const (
	// mostTimes is the number of writes over which a rate is measured.
	mostTimes = 8
	// hot is the minimum rate, in writes per second, at which repeated writes form a loop. A resync
	// or a heartbeat is slower.
	hot = 1.0
	// schedule is a rate in writes per second. A field that holds a time and changes more slowly
	// than this may belong to a schedule.
	schedule = 0.1
	// enoughTimes, enoughOthers and enoughNoOps are the numbers of equal writes that cause a
	// notice: writes of a field that holds a time, writes of other fields, and writes that change
	// nothing. Fields such as the number of ready replicas may be the only change in several writes
	// in a row.
	enoughTimes, enoughOthers, enoughNoOps = 3, 10, 3
	// mostFields is the number of fields that can be noticed together.
	mostFields = 3
)

// streak is a sequence of writes by one instance to one object that changed the same fields.
type streak struct {
	fields []string
	n      int
	times  []time.Duration // of the last mostTimes writes
	clock  bool            // whether all fields hold times
}

// count adds a write to the streak of its object, and notices a streak that is too long.
func (s *Session) count(o *object, w *Write) {
	if w.Verb == "create" || w.Verb == "delete" || !w.NoOp && len(w.Changed) == 0 {
		return
	}
	if o.streaks == nil {
		o.streaks = map[string]*streak{}
	}
	// The writes to the object and to its status alternate in many controllers.
	key := w.Instance + "/" + w.Subresource
	st := o.streaks[key]
	if st == nil || !slices.Equal(st.fields, w.Changed) {
		st = &streak{fields: w.Changed, clock: s.onlyTimes(o, w)}
		o.streaks[key] = st
	}
	st.n++
	if st.times = append(st.times, w.At); len(st.times) > mostTimes {
		st.times = st.times[1:]
	}
	switch enough := st.enough(); {
	case st.n < enough || len(st.fields) > mostFields:
	case len(st.fields) == 0:
		s.repeated("no-op", o, w, st, fmt.Sprintf("%d writes of %s in a row changed nothing%s", st.n, subject(w), st.pace()))
	default:
		s.repeated("field", o, w, st, fmt.Sprintf("%s of %s changes with each write and nothing else does: %d times%s%s",
			strings.Join(st.fields, " and "), o.ref.Short(), st.n, st.pace(), st.what()))
	}
}

func (s *Session) repeated(kind string, o *object, w *Write, st *streak, text string) {
	key := noticeKey{kind, o.ref, w.Instance + "/" + w.Subresource + strings.Join(st.fields, " ")}
	s.notice(key, w, 1, func(n *Notice) {
		n.Count, n.Fields, n.Text, n.Level = st.n, st.fields, text, Note
		if len(st.times) == mostTimes && st.rate() >= hot || kind == "field" && st.clock && st.rate() >= schedule {
			n.Level = Warning
		}
	})
}

func subject(w *Write) string {
	if w.Subresource == "" {
		return w.Object.Short()
	}
	return "the " + w.Subresource + " of " + w.Object.Short()
}

func (st *streak) enough() int {
	switch {
	case len(st.fields) == 0:
		return enoughNoOps
	case st.clock:
		return enoughTimes
	}
	return enoughOthers
}

func (st *streak) what() string {
	if st.clock && len(st.fields) == 1 {
		return "; it holds a time"
	}
	return ""
}

// rate returns the number of writes per second, or 0 if there are too few of them.
func (st *streak) rate() float64 {
	if n := len(st.times); n > 2 {
		if span := st.times[n-1] - st.times[0]; span > 0 {
			return float64(n-1) / span.Seconds()
		}
	}
	return 0
}

func (st *streak) pace() string {
	if rate := st.rate(); rate >= hot {
		return fmt.Sprintf(", %.1f each second", rate)
	}
	return ""
}

// onlyTimes reports whether each field that a write changed holds a time.
func (s *Session) onlyTimes(o *object, w *Write) bool {
	changes, _, _ := s.changesAt(o, w.After)
	for _, c := range changes {
		if !isTime(c.After) {
			return false
		}
	}
	return len(w.Changed) > 0
}

// isTime reports whether a value is a time: a text in a usual format, or a number of seconds,
// milliseconds or nanoseconds since 1970 that lies between 2017 and 2065.
func isTime(value json.RawMessage) bool {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		for _, layout := range []string{time.RFC3339Nano, time.RFC1123, time.RFC1123Z, time.UnixDate, time.DateTime, "2006-01-02 15:04:05.999999999 -0700 MST"} {
			text, _, _ := strings.Cut(v, " m=+") // the monotonic clock in Go's String
			if _, err := time.Parse(layout, text); err == nil {
				return true
			}
		}
	case float64:
		for _, unit := range []float64{1, 1e3, 1e9} {
			if v >= 1.5e9*unit && v < 3e9*unit {
				return true
			}
		}
	}
	return false
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// author is a change of one field.
type author struct {
	manager string
	value   string
	at      time.Duration
}

// flips is the number of alternating values at which a fight is noticed. A change of more than
// mostChanged fields is not searched for fights.
const flips, mostChanged = 4, 20

// changedBy notices fields whose values alternate. It is called for each new version of an
// object that the controller has written.
func (s *Session) changedBy(o *object, at int, content map[string]any) {
	changes, _, _ := s.changesAt(o, o.versions[at].rv)
	if len(changes) > mostChanged {
		return
	}
	if o.authors == nil {
		o.authors = map[string][]author{}
	}
	for _, c := range changes {
		history := slices.Concat(o.authors[c.Path], []author{{authorOf(content, c.steps), string(c.After), o.versions[at].at}})
		if len(history) > flips {
			history = history[1:]
		}
		o.authors[c.Path] = history
		if o.fights(history) {
			s.fight(o, c.Path, history, o.versions[at])
		}
	}
}

// fights reports whether values alternate because of several managers, or because of one controller
// that contradicts itself. A rollout also changes fields of a status back and forth, but more
// slowly, or through another controller.
func (o *object) fights(history []author) bool {
	if len(history) != flips || history[0].value != history[2].value || history[1].value != history[3].value ||
		history[0].value == history[1].value {
		return false
	}
	if history[2].manager != history[3].manager {
		return true
	}
	quick := (history[3].at-history[0].at).Seconds()*hot <= flips-1
	return quick && slices.ContainsFunc(o.written, func(w *Write) bool { return w.Manager == history[3].manager })
}

func (s *Session) fight(o *object, path string, history []author, v version) {
	w := &Write{At: v.at, Seq: s.entries[v.entry].Seq}
	s.notice(noticeKey{"fight", o.ref, path}, w, 1, func(n *Notice) {
		n.Level, n.Fields = Warning, []string{path}
		one, two := history[2], history[3]
		if one.manager == two.manager {
			n.Text = fmt.Sprintf("%s of %s goes back and forth between %s and %s; both are written by %s",
				path, o.ref.Short(), shown(one.value), shown(two.value), named(one.manager))
			return
		}
		n.Text = fmt.Sprintf("%s and %s fight over %s of %s: %s, then %s, again and again",
			named(one.manager), named(two.manager), path, o.ref.Short(), shown(one.value), shown(two.value))
	})
}

func named(manager string) string {
	if manager == "" {
		return "an unknown manager"
	}
	return manager
}

// shown shortens a value for a sentence.
func shown(value string) string {
	if value == "" {
		return "nothing"
	}
	if runes := []rune(value); len(runes) > 40 {
		return string(runes[:39]) + "…"
	}
	return value
}
