package measure

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/bench/internal/footprint"
)

// memory measures the memory of all processes, before and after a thousand objects
// are created.
var memory = Measure{
	Name:    "memory",
	Timeout: 5 * time.Minute,
	Figures: []Figure{
		{Name: "rss", Label: "memory, RSS", Unit: "MB", Note: "Memory: used by all processes of the environment, and by the files that they keep in" +
			" memory-backed file systems, 3 s after the last request. RSS counts a shared page once for each process; PSS counts it only once."},
		{Name: "pss", Label: "memory, PSS", Unit: "MB"},
		{Name: "rss-1000", Label: "1000 objects, RSS", Unit: "MB"},
		{Name: "pss-1000", Label: "1000 objects, PSS", Unit: "MB"},
	},
	run: func(ctx context.Context, b Bout) (v Values, err error) {
		before, err := footprint.InMemory()
		if err != nil {
			return nil, err
		}
		env, config, err := b.started()
		if err != nil {
			return nil, err
		}
		defer env.stop(&err)
		empty, err := b.settled(ctx, before)
		if err != nil {
			return nil, err
		}
		if err := fill(ctx, config, 1000); err != nil {
			return nil, err
		}
		full, err := b.settled(ctx, before)
		if err != nil {
			return nil, err
		}
		return Values{
			"rss": megabytes(empty.RSS), "pss": megabytes(empty.PSS),
			"rss-1000": megabytes(full.RSS), "pss-1000": megabytes(full.PSS),
		}, nil
	},
}

// fill installs the CRD and creates the given number of objects.
func fill(ctx context.Context, config *rest.Config, objects int) error {
	if err := installWidgets(config); err != nil {
		return err
	}
	s, err := openShelf(config)
	if err != nil {
		return err
	}
	for i := range objects {
		if err := s.put(ctx, fmt.Sprintf("widget-%d", i)); err != nil {
			return err
		}
	}
	return nil
}
