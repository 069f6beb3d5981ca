package source

import (
	"context"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/api"
)

// Follow asks the same question again whenever the session grows, until the context or the
// session ends. It calls do with the new results only, in a slice of the usual type.
func Follow(ctx context.Context, s Source, q inspect.Question, with inspect.Query, do func(answer any) error) error {
	client, running := s.(*api.Client)
	if !running {
		return ErrStill
	}
	printed := map[int64]bool{}
	err := client.Changes(ctx, func() error {
		answer, err := client.Ask(ctx, q, with)
		if err != nil {
			return err
		}
		with.Limit = 0 // it is about what happened before
		if results := fresh(answer, &with.After, printed); results != nil {
			return do(results)
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// fresh returns the results that have not been returned before, or nil if there are none, and
// advances the number after which to ask.
func fresh(answer any, after *int64, printed map[int64]bool) any {
	switch all := answer.(type) {
	case *[]inspect.Item:
		return newer(*all, after, func(i inspect.Item) int64 { return i.Seq })
	case *[]*inspect.Write:
		return newer(*all, after, func(w *inspect.Write) int64 { return w.Seq })
	case *[]inspect.Admission:
		return newer(*all, after, func(a inspect.Admission) int64 { return a.Seq })
	case *[]*inspect.Reconcile:
		return ended(*all, after, printed)
	}
	return nil
}

func newer[T any](all []T, after *int64, seq func(T) int64) any {
	if len(all) == 0 {
		return nil
	}
	*after = seq(all[len(all)-1])
	return &all
}

// ended returns the reconciles that have ended: an earlier answer would be incomplete.
func ended(all []*inspect.Reconcile, after *int64, printed map[int64]bool) any {
	var done []*inspect.Reconcile
	open := false
	for _, r := range all {
		switch {
		case !r.Done:
			open = true
		case !printed[r.Seq]:
			printed[r.Seq] = true
			done = append(done, r)
		}
		if !open {
			*after = r.Seq
			delete(printed, r.Seq)
		}
	}
	if done == nil {
		return nil
	}
	return &done
}
