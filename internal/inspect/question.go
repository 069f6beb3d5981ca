package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Query holds the parameters of a question. A parameter with its zero value is not set.
type Query struct {
	// Object and Namespace name an object as Session.Find reads them.
	Object    string
	Namespace string
	// After leaves out everything up to an entry's number.
	After int64
	// Limit keeps only the most recent results, or for objects the first ones after Offset.
	Limit, Offset int
	// Filter holds words that the names of objects contain.
	Filter string
	// From and To are resource versions.
	From, To int64
	// Seq is the number of an entry.
	Seq int64
}

// Question is a question that a session can answer. The page, the commands and the tools for
// agents ask the same questions.
type Question struct {
	Name string
	// About is the role of the object: required, optional, or not used.
	About About
	// Short describes the answer.
	Short string
	// Parameters lists the other parameters that the question uses.
	Parameters []string
	// New returns a pointer to an empty answer, for decoding.
	New func() any
	ask func(*Session, Ref, Query) (any, error)
}

// About is the role of the object in a question.
type About string

// The roles.
const (
	Required About = "required"
	Optional About = "optional"
	None     About = ""
)

// ObjectList is the answer to the question objects.
type ObjectList struct {
	Objects []Row `json:"objects"`
	Total   int   `json:"total"`
}

// Questions lists all questions.
var Questions = []Question{
	{"overview", None, "the counts, the instances of the controller, and what is unusual", nil,
		empty[Overview], func(s *Session, _ Ref, _ Query) (any, error) { return s.Overview(), nil }},
	{"objects", None, "the objects of the session", []string{"filter", "offset", "limit"},
		empty[ObjectList], func(s *Session, _ Ref, q Query) (any, error) {
			rows, total := s.Objects(q.Filter, q.Offset, q.Limit)
			return ObjectList{rows, total}, nil
		}},
	{"timeline", Required, "what happened to an object: events, reads, writes, webhooks and log lines", []string{"after", "limit"},
		empty[[]Item], func(s *Session, ref Ref, q Query) (any, error) {
			return recent(s.timelineAfter(ref, q.After, q.Limit), q, func(i Item) int64 { return i.Seq }), nil
		}},
	{"why", Optional, "the reconciles, with the events that preceded them and their writes", []string{"after", "limit"},
		empty[[]*Reconcile], func(s *Session, ref Ref, q Query) (any, error) {
			return recent(s.whyAfter(ref, q.After, q.Limit), q, func(r *Reconcile) int64 { return r.Seq }), nil
		}},
	{"writes", Optional, "the writes of the controller, with the fields that they changed", []string{"after", "limit"},
		empty[[]*Write], func(s *Session, ref Ref, q Query) (any, error) {
			return recent(s.Writes(ref), q, func(w *Write) int64 { return w.Seq }), nil
		}},
	{"diff", Required, "the fields that differ between two resource versions", []string{"from", "to"},
		empty[Difference], func(s *Session, ref Ref, q Query) (any, error) {
			d, found := s.Diff(ref, q.From, q.To)
			if !found {
				return nil, fmt.Errorf("the session does not contain these versions of %s; its versions are %v", ref, s.versionNumbers(ref))
			}
			return d, nil
		}},
	{"versions", Required, "the known versions of an object", nil,
		empty[[]Version], func(s *Session, ref Ref, _ Query) (any, error) { return s.Versions(ref), nil }},
	{"content", Required, "an object at a resource version, without secrets", []string{"to"},
		empty[map[string]any], func(s *Session, ref Ref, q Query) (any, error) {
			content := s.Content(ref, q.To)
			if content == nil {
				return nil, fmt.Errorf("the session does not contain %s at this version, or it was deleted; its versions are %v", ref, s.versionNumbers(ref))
			}
			return content, nil
		}},
	{"owners", Required, "the tree of owners of an object", nil,
		empty[*Node], func(s *Session, ref Ref, _ Query) (any, error) { return s.Owners(ref), nil }},
	{"conditions", Required, "the conditions of an object over time", nil,
		empty[[]ConditionChange], func(s *Session, ref Ref, _ Query) (any, error) { return s.Conditions(ref), nil }},
	{"managers", Required, "the field managers of an object", nil,
		empty[[]Manager], func(s *Session, ref Ref, _ Query) (any, error) { return s.Managers(ref), nil }},
	{"admissions", Optional, "the calls of webhooks, with their answers", []string{"after", "limit"},
		empty[[]Admission], func(s *Session, ref Ref, q Query) (any, error) {
			return recent(s.Admissions(ref), q, func(a Admission) int64 { return a.Seq }), nil
		}},
	{"permissions", None, "the permissions that the controller used, those that it lacked, and those that it did not use", nil,
		empty[PermissionReport], func(s *Session, _ Ref, _ Query) (any, error) { return s.Permissions(), nil }},
	{"entry", None, "one entry of the trace, without secrets", []string{"seq"},
		empty[trace.Entry], func(s *Session, _ Ref, q Query) (any, error) {
			e, found := s.Entry(q.Seq)
			if !found {
				return nil, fmt.Errorf("the session has no entry %d; the last one is %d", q.Seq, s.Last())
			}
			return e, nil
		}},
}

func empty[T any]() any { return new(T) }

// Named returns the question with a name.
func Named(name string) (Question, bool) {
	i := slices.IndexFunc(Questions, func(q Question) bool { return q.Name == name })
	if i < 0 {
		return Question{}, false
	}
	return Questions[i], true
}

// Answer answers a question. The answer can be encoded as JSON, but only before the session
// grows.
func (s *Session) Answer(q Question, with Query) (any, error) {
	var ref Ref
	switch {
	case q.About == None:
	case with.Object != "":
		var err error
		if ref, err = s.Find(with.Object, with.Namespace); err != nil {
			return nil, err
		}
	case q.About == Required:
		return nil, fmt.Errorf("%s needs an object; write KIND/NAME or KIND/NAMESPACE/NAME", q.Name)
	}
	return q.ask(s, ref, with)
}

// recent returns the results that are newer than the query's entry; if there are more than the
// query's limit, it returns only the last ones.
func recent[T any](all []T, q Query, seq func(T) int64) []T {
	if q.After > 0 {
		from, _ := slices.BinarySearchFunc(all, q.After+1, func(x T, after int64) int { return cmp.Compare(seq(x), after) })
		all = all[from:]
	}
	if q.Limit > 0 && len(all) > q.Limit {
		all = all[len(all)-q.Limit:]
	}
	if all == nil {
		return []T{}
	}
	return all
}

func (s *Session) versionNumbers(ref Ref) (numbers []int64) {
	for _, v := range s.Versions(ref) {
		numbers = append(numbers, v.ResourceVersion)
	}
	return numbers
}
