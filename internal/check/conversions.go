package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/check/conversion"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/served"
)

const (
	// conversionShare is the part of the budget in which objects are converted. Without a budget, it is
	// longestConversions for each kind.
	conversionShare    = 20
	longestConversions = 30 * time.Second
)

// convert sends objects of each kind through the versions between which a webhook converts, without
// faults. What two runs lose is a finding.
func (c *check) convert(ctx context.Context) error {
	kinds := c.convertible()
	if len(kinds) == 0 {
		return nil
	}
	within := timeToConvert(c.Budget, len(kinds), max(c.fleet.Len(), 1))
	c.Observer.Phase("converting objects of " + noun.Count(len(kinds), "kind"))
	c.Observer.Total(len(kinds))
	return c.fleet.Each(ctx, len(kinds), func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		err := c.convertKind(ctx, w, kinds[i], within)
		c.Observer.Done("", time.Since(began))
		return err
	})
}

// timeToConvert returns the time for each of the kinds, which the labs share.
func timeToConvert(budget time.Duration, kinds, labs int) time.Duration {
	if budget <= 0 {
		return longestConversions
	}
	return min(longestConversions, budget/conversionShare*time.Duration(min(labs, kinds))/time.Duration(kinds))
}

// convertible returns the kinds whose objects are converted. A replay has only the objects of its scenario,
// and the first shard converts for all.
func (c *check) convertible() []*scenario.Convertible {
	if c.PlanOnly || c.Upgrade != nil || c.Shard > 1 || c.Subject.Webhook.Port == 0 || c.hasEnough() {
		return nil
	}
	given, crds := c.applied(), crdsOf(c.Subject.Install)
	if !c.Only {
		return scenario.GenerateConversions(given, crds, c.Seed)
	}
	return slices.DeleteFunc(scenario.GivenConversions(given, crds), func(kind *scenario.Convertible) bool {
		return !slices.ContainsFunc(pairs(kind), c.replays)
	})
}

// replays reports whether a replay is about a conversion with the given name.
func (c *check) replays(name string) bool {
	return slices.ContainsFunc(c.Scenarios, func(sc *scenario.Scenario) bool { return sc.Name == name })
}

// pairs returns the names of the conversions between each two versions of a kind.
func pairs(kind *scenario.Convertible) (names []string) {
	for _, from := range kind.Versions {
		for _, via := range kind.Versions {
			if from != via {
				names = append(names, conversion.Name(kind.Kind, from, via))
			}
		}
	}
	return names
}

// applied returns the objects that the scenarios apply, each once.
func (c *check) applied() (all []map[string]any) {
	scenarios := slices.Clone(c.Scenarios)
	for _, t := range c.Trials {
		scenarios = append(scenarios, t.Scenario)
	}
	seen := map[string]bool{}
	for _, sc := range scenarios {
		for _, step := range sc.Steps {
			for _, m := range step.Apply {
				o := unstructured.Unstructured{Object: m.Object}
				key := o.GetAPIVersion() + " " + o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
				if m.Object != nil && !seen[key] {
					seen[key] = true
					all = append(all, m.Object)
				}
			}
		}
	}
	return all
}

// crdsOf returns the CRDs of an installation.
func crdsOf(install []unstructured.Unstructured) (all []*apiextensionsv1.CustomResourceDefinition) {
	for i := range install {
		if !served.IsCRD(&install[i]) {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(install[i].Object, crd); err == nil {
			all = append(all, crd)
		}
	}
	return all
}

// convertKind converts the objects of one kind, and those with a finding once more.
func (c *check) convertKind(ctx context.Context, w *fleet.Worker, kind *scenario.Convertible, within time.Duration) error {
	kind.Lossy = c.Opinions.Conversions.Lossy
	first, err := c.converted(ctx, w, kind, within)
	if first == nil || err != nil {
		return err
	}
	c.note(described(kind, first))
	for _, why := range first.Failed {
		c.note("a conversion failed: " + why)
	}
	if len(first.Findings) == 0 {
		c.converts(first.Complete)
		return nil
	}
	again := *kind
	again.Objects = nil
	for _, f := range first.Findings {
		again.Objects = append(again.Objects, f.Object)
	}
	second, err := c.converted(ctx, w, &again, within)
	if second == nil || err != nil {
		return err
	}
	c.converts(first.Complete, first.Findings, second.Findings)
	for _, f := range first.Findings {
		if c.Only && !c.replays(f.Scenario) {
			continue
		}
		if !slices.ContainsFunc(second.Findings, func(other conversion.Finding) bool { return other.ID == f.ID }) {
			c.note("only one of two runs showed this, so it is no finding: " + f.Sentence)
			continue
		}
		c.lossy(f)
	}
	return nil
}

// converted makes one run. If the run shows nothing, it returns nil and notes the reason.
func (c *check) converted(ctx context.Context, w *fleet.Worker, kind *scenario.Convertible, within time.Duration) (*lab.Converted, error) {
	done, err := w.Convert(ctx, kind, within, c.Seed)
	var failed *fleet.LabError
	var setup *fleet.SetupError
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &failed), errors.As(err, &setup):
		c.note(fmt.Sprintf("the conversions of %s could not be tried: %v", kind.Kind, err))
		return nil, nil
	case err != nil:
		return nil, err
	}
	c.tally.learnt(1)
	return done, nil
}

// lossy reports a finding, with a scenario for its replay.
func (c *check) lossy(f conversion.Finding) {
	f.Attempts, f.Reproduced = 2, 2
	sc := scenario.Conversion(f.Scenario, f.Object)
	c.addScenario(sc)
	c.faultless(f.Finding, &fleet.Lesson{Lesson: &lab.Lesson{Scenario: sc}})
}

// converts notes the conversions that were tried completely, and have lost nothing in any run.
func (c *check) converts(complete []string, lost ...[]conversion.Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range complete {
		if !slices.ContainsFunc(slices.Concat(lost...), func(f conversion.Finding) bool { return f.Scenario == name }) {
			c.result.Converted = append(c.result.Converted, name)
		}
	}
}

// described says in one sentence what was converted.
func described(kind *scenario.Convertible, done *lab.Converted) string {
	text := fmt.Sprintf("%s: converted %s between %s and back", kind.Kind, noun.Count(done.Made, "object"), strings.Join(kind.Versions, ", "))
	if done.Refused > 0 {
		text += fmt.Sprintf("; %d were refused", done.Refused)
	}
	if done.Left > 0 {
		text += fmt.Sprintf("; for %d there was no time", done.Left)
	}
	return text
}
