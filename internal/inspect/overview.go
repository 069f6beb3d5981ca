package inspect

import (
	"slices"
	"strings"
	"time"
)

// Overview is the first screen.
type Overview struct {
	Subject string    `json:"subject,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Last is the time and the number of the last entry.
	Last       time.Duration `json:"last"`
	Seq        int64         `json:"seq"`
	Objects    int           `json:"objects"`
	Reconciles int           `json:"reconciles"`
	Writes     int           `json:"writes"`
	NoOps      int           `json:"noOps"`
	Failed     int           `json:"failed"`
	Admissions int           `json:"admissions"`
	Errors     int           `json:"errors"`
	LastError  string        `json:"lastError,omitempty"`
	Instances  []*Instance   `json:"instances"`
	Notices    []*Notice     `json:"notices"`
}

// Overview returns the counts, the instances and the notices.
func (s *Session) Overview() Overview {
	o := Overview{
		Subject: s.header.Subject, Started: s.header.Started, Last: s.last, Seq: s.Last(), Objects: len(s.objects),
		Reconciles: len(s.reconciles), Admissions: len(s.reviews) - s.replays, Errors: len(s.errors),
		Instances: slices.Clone(s.instances), Notices: s.Notices(),
	}
	for _, r := range s.reconciles {
		if s.onlyRead(r) {
			o.Reconciles--
		}
	}
	for _, w := range s.writes {
		if w.Bookkeeping {
			continue
		}
		o.Writes++
		if w.NoOp {
			o.NoOps++
		}
		if w.Failed {
			o.Failed++
		}
	}
	if o.Instances == nil {
		o.Instances = []*Instance{}
	}
	if n := len(s.errors); n > 0 {
		line := ParseLine(s.entries[s.errors[n-1]].Line.Text)
		o.LastError = s.scrub(strings.TrimSuffix(line.Message+": "+line.Error, ": "))
	}
	return o
}

// Row is an object in a list.
type Row struct {
	Object  Ref    `json:"object"`
	Summary string `json:"summary,omitempty"`
	Gone    bool   `json:"gone,omitempty"`
	// Writes counts the writes of the controller, and Versions the known versions.
	Writes   int `json:"writes"`
	Versions int `json:"versions"`
	// Last is the time of the last entry about the object.
	Last time.Duration `json:"last"`
	// Notices counts the notices about the object.
	Notices int `json:"notices,omitempty"`
}

// Objects returns the objects whose names or kinds contain all words of a filter, sorted by
// kind and name. Offset and most select a part; total is the number of all matches.
func (s *Session) Objects(filter string, offset, most int) (rows []Row, total int) {
	var found []*object
	words := strings.Fields(strings.ToLower(filter))
	for _, o := range s.inOrder() {
		if len(words) == 0 || containsAll(strings.ToLower(o.ref.String()), words) {
			found = append(found, o)
		}
	}
	total = len(found)
	from := min(max(offset, 0), total)
	to := total
	if most > 0 {
		to = min(from+most, total)
	}
	notices := map[Ref]int{}
	for _, n := range s.Notices() {
		notices[n.Object]++
	}
	rows = []Row{}
	for _, o := range found[from:to] {
		row := Row{Object: o.ref, Gone: o.gone(), Writes: len(o.written), Versions: len(o.versions), Notices: notices[o.ref]}
		if v, known := o.latest(); known {
			row.Summary, row.Last = summary(s.content(v)), v.at
		}
		if n := len(o.items); n > 0 {
			row.Last = s.entries[o.items[n-1]].At
		}
		rows = append(rows, row)
	}
	return rows, total
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// inOrder returns all objects by kind and name.
func (s *Session) inOrder() []*object {
	if s.sorted == nil {
		for _, o := range s.objects {
			s.sorted = append(s.sorted, o)
		}
		slices.SortFunc(s.sorted, func(a, b *object) int { return compareRefs(a.ref, b.ref) })
	}
	return s.sorted
}

// Version is a known version of an object.
type Version struct {
	ResourceVersion int64         `json:"resourceVersion"`
	At              time.Duration `json:"at"`
	Deleted         bool          `json:"deleted,omitempty"`
}

// Versions returns the known versions of an object, the oldest first.
func (s *Session) Versions(ref Ref) []Version {
	versions := []Version{}
	if o := s.objects[ref]; o != nil {
		for _, v := range o.versions {
			versions = append(versions, Version{v.rv, v.at, v.deleted})
		}
	}
	return versions
}

// Difference is the result of comparing two versions.
type Difference struct {
	Object Ref `json:"object"`
	// From and To are resource versions; 0 stands for no object.
	From    int64         `json:"from"`
	To      int64         `json:"to"`
	Changes []FieldChange `json:"changes"`
}

// Diff compares two versions of an object. If to is 0, Diff takes the last version; if from is 0,
// it takes the version before to. It reports false if a version is not known.
func (s *Session) Diff(ref Ref, from, to int64) (Difference, bool) {
	o := s.objects[ref]
	if o == nil {
		return Difference{}, false
	}
	after, found := o.latest()
	if to != 0 {
		after, found = o.at(to)
	}
	if !found {
		return Difference{}, false
	}
	before, known := o.before(after.rv)
	if from != 0 {
		if before, known = o.at(from); !known {
			return Difference{}, false
		}
	}
	d := Difference{Object: ref, To: after.rv, Changes: []FieldChange{}}
	var was map[string]any
	if known {
		d.From, was = before.rv, s.content(before)
	}
	d.Changes = append(d.Changes, Compare(was, s.content(after))...)
	return d, true
}

// Content returns an object at a resource version; 0 means the last one. It returns nil if the
// version is not known, or the object was deleted.
func (s *Session) Content(ref Ref, rv int64) map[string]any {
	o := s.objects[ref]
	if o == nil {
		return nil
	}
	v, found := o.latest()
	if rv != 0 {
		v, found = o.at(rv)
	}
	if !found {
		return nil
	}
	return s.content(v)
}
