package measure

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// start measures the time that the tests of each package spend on starting and stopping.
var start = Measure{
	Name:    "start",
	Timeout: 4 * time.Minute,
	Figures: []Figure{
		{Name: "start", Label: "start", Unit: "s"},
		{Name: "stop", Label: "stop", Unit: "s"},
	},
	run: func(_ context.Context, b Bout) (Values, error) {
		env := b.environment()
		began := time.Now()
		if _, err := env.Start(); err != nil {
			return nil, fmt.Errorf("starting the environment: %w", err)
		}
		ready := time.Now()
		if err := env.Stop(); err != nil {
			return nil, fmt.Errorf("stopping the environment: %w", err)
		}
		return Values{"start": seconds(ready.Sub(began)), "stop": seconds(time.Since(ready))}, nil
	},
}

// roundtrip measures the smallest test suite of a controller.
var roundtrip = Measure{
	Name:    "roundtrip",
	Timeout: 4 * time.Minute,
	Figures: []Figure{{
		Name: "roundtrip", Label: "round trip", Unit: "s",
		Note: "Round trip: start, install one CRD, create one custom resource, stop.",
	}},
	run: func(ctx context.Context, b Bout) (Values, error) {
		began := time.Now()
		err := onePackage(ctx, b)
		return Values{"roundtrip": seconds(time.Since(began))}, err
	},
}

// onePackage does the minimum that the tests of one package do.
func onePackage(ctx context.Context, b Bout) (err error) {
	env := b.environment()
	env.CRDs = []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}
	config, err := env.Start()
	if err != nil {
		return fmt.Errorf("starting the environment: %w", err)
	}
	defer env.stop(&err)
	s, err := openShelf(unlimited(config))
	if err != nil {
		return err
	}
	return s.put(ctx, "first")
}
