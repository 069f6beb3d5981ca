package fleet

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

// conceal removes secret values from the parts of an answer that are shown or saved. The
// scenario and the reference of a lesson keep them, because other labs need them.
func conceal(answer *reply) error {
	texts := []*string{&answer.Error}
	if l := answer.Lesson; l != nil {
		if err := scrub.JSON(&scrub.Known, &l.Findings); err != nil {
			return fmt.Errorf("removing secret values: %w", err)
		}
		texts = append(texts, &l.Said)
		for i := range l.Dropped {
			texts = append(texts, &l.Dropped[i])
		}
	}
	if o := answer.Outcome; o != nil {
		if err := scrub.JSON(&scrub.Known, &o.Findings); err != nil {
			return fmt.Errorf("removing secret values: %w", err)
		}
		texts = append(texts, &o.Inconclusive, &o.NotApplied)
	}
	for _, text := range texts {
		*text = scrub.Known.Text(*text)
	}
	return nil
}
