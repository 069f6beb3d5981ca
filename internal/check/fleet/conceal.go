package fleet

import (
	"errors"
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

// conceal removes secret values from the parts of an answer that are shown or saved. The scenario
// and the reference of a lesson keep their secret values, because other labs need these values.
func conceal(answer *reply) error {
	texts := []*string{&answer.Error, &answer.Printed}
	if l := answer.Lesson; l != nil {
		if err := scrub.JSON(&scrub.Known, &l.Findings); err != nil {
			return fmt.Errorf("removing secret values: %w", err)
		}
		texts = append(texts, &l.Said)
		texts = append(texts, each(l.Dropped, l.Missing, l.Own, l.Notes)...)
	}
	if w := answer.Watched; w != nil {
		if err := scrub.JSON(&scrub.Known, &w.Findings); err != nil {
			return fmt.Errorf("removing secret values: %w", err)
		}
		texts = append(texts, &w.Failed, &w.What)
		texts = append(texts, each(w.Beats)...)
	}
	if o := answer.Outcome; o != nil {
		if err := errors.Join(scrub.JSON(&scrub.Known, &o.Findings), scrub.JSON(&scrub.Known, &o.Strayed)); err != nil {
			return fmt.Errorf("removing secret values: %w", err)
		}
		texts = append(texts, &o.Inconclusive, &o.NotApplied)
	}
	if u := answer.Upgraded; u != nil {
		if err := scrub.JSON(&scrub.Known, &u.Result); err != nil {
			return fmt.Errorf("removing secret values: %w", err)
		}
		texts = append(texts, &u.Inconclusive)
	}
	if c := answer.Converted; c != nil {
		if err := scrub.JSON(&scrub.Known, &c.Findings); err != nil {
			return fmt.Errorf("removing secret values: %w", err)
		}
		texts = append(texts, each(c.Failed)...)
	}
	for _, text := range texts {
		*text = scrub.Known.Text(*text)
	}
	return nil
}

// each returns pointers to the elements of lists.
func each(lists ...[]string) (all []*string) {
	for _, list := range lists {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}
