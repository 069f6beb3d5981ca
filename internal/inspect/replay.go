package inspect

import (
	"fmt"
	"maps"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Replay compares the answer to a review that was sent again with the original answer.
type Replay struct {
	// Of is the number of the entry with the original.
	Of int64 `json:"of"`
	// Known reports whether the session still contains the original.
	Known bool `json:"known"`
	// Differences lists the fields of the answer that differ; none means the same answer.
	Differences []FieldChange `json:"differences"`
}

// Text describes the result of the comparison.
func (r *Replay) Text() string {
	switch {
	case !r.Known:
		return fmt.Sprintf("the original answer (entry %d) is no longer known", r.Of)
	case len(r.Differences) == 0:
		return fmt.Sprintf("the same answer as in entry %d", r.Of)
	}
	return fmt.Sprintf("the answer differs from entry %d in %s", r.Of, strings.Join(paths(r.Differences), ", "))
}

// compared compares the answer to a review that was sent again with the answer to the original.
func (s *Session) compared(r *trace.Review) *Replay {
	replay := &Replay{Of: r.Replays, Differences: []FieldChange{}}
	original, found := s.Entry(r.Replays)
	if replay.Known = found && original.Review != nil; replay.Known {
		replay.Differences = append(replay.Differences, Compare(s.answerOf(original.Review), s.answerOf(r))...)
	}
	return replay
}

// answerOf returns the parts of an answer that are compared.
func (s *Session) answerOf(r *trace.Review) map[string]any {
	answer := map[string]any{"httpStatus": int64(r.Code)}
	if r.Error != "" {
		answer["error"] = s.scrub(r.Error)
	}
	review, err := r.ResponseObject()
	if response, isMap := review["response"].(map[string]any); err == nil && isMap {
		maps.Copy(answer, response)
		delete(answer, "uid")
	}
	return answer
}

// Review returns the review in an entry as it was recorded, with the secrets of the request. The
// review never changes, so unlike everything else in a Session it may be used after Live.View.
func (s *Session) Review(seq int64) (*trace.Review, error) {
	e, found := s.Entry(seq)
	switch {
	case !found:
		return nil, fmt.Errorf("the session has no entry %d; the last one is %d", seq, s.Last())
	case e.Review == nil:
		return nil, fmt.Errorf("entry %d is no call of a webhook; koboshi inspect admissions lists them", seq)
	}
	return e.Review, nil
}

// Admission explains the call of a webhook in an entry, which the session need not contain yet.
func (s *Session) Admission(e *trace.Entry) Admission { return s.admission(e) }
