package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/conversion"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Converted holds what the conversions of a kind show.
type Converted struct {
	Findings []conversion.Finding `json:"findings,omitempty"`
	// Made counts the objects that came back, one for each pair of versions. Refused counts those that
	// the API server did not create, and Left those for which there was no time.
	Made    int `json:"made"`
	Refused int `json:"refused,omitempty"`
	Left    int `json:"left,omitempty"`
	// Complete names the conversions in which each object came back. It is empty if objects were left.
	Complete []string `json:"complete,omitempty"`
	// Failed describes the first failure of each kind, such as an object that cannot be read.
	Failed []string `json:"failed,omitempty"`
}

// converting is the state of a run that converts objects.
type converting struct {
	*scenario.Convertible
	within time.Duration // the time for the conversions, without that for the start of the controller
	trips  []conversion.Trip
	failed map[string]string // by what failed, and in which versions
	result Converted
}

// keptKey and keptValue are a label and an annotation of each object that is converted.
const keptKey, keptValue = "koboshi.example.com/kept", "koboshi"

// Convert writes each object in its version, reads it in each other version, and writes it back there,
// all in one run. The controller serves its conversions, but sees none of the objects.
func (l *Lab) Convert(ctx context.Context, c *scenario.Convertible, within time.Duration, seed uint64) (*Converted, error) {
	r := &run{
		lab: l, scenario: &scenario.Scenario{Name: "conversions"}, window: firstWindow, streams: 1, idle: idle, out: &evidence.Run{Seed: seed},
		converting: &converting{Convertible: c, within: within, failed: map[string]string{}},
	}
	_, err := r.do(ctx)
	done := r.converting
	var gone *GoneError
	if errors.As(err, &gone) && len(done.trips) > 0 {
		done.failed["exit"] = scrub.Known.Text(gone.Error())
		err = nil
	}
	if err != nil {
		return nil, err
	}
	done.result.Findings = conversion.Judge(done.trips, done.allows())
	if gone == nil && done.result.Left == 0 {
		done.result.Complete = conversion.Complete(done.trips)
	}
	for i := range done.result.Findings {
		done.result.Findings[i].Seed = seed
	}
	for _, why := range done.failed {
		done.result.Failed = append(done.result.Failed, why)
	}
	slices.Sort(done.result.Failed)
	return &done.result, nil
}

// allows returns a function that reports whether the project accepts a loss.
func (c *converting) allows() func(kind, path string) bool {
	return (&opinions.Conversions{Lossy: c.Lossy}).Allows
}

// withoutMutating returns the webhook configurations that do not change objects. What a mutating webhook
// changes could not be told from what a conversion changes.
func withoutMutating(configurations []object) []object {
	return slices.DeleteFunc(slices.Clone(configurations), func(o object) bool { return o.GetKind() == "MutatingWebhookConfiguration" })
}

// convert sends the objects through their versions. The controller does not get to know them: its watches
// are held back.
func (r *run) convert(ctx context.Context) error {
	hold := func(p *apiproxy.Proxy) { p.Hold(func(trace.Target) bool { return true }) }
	r.controller.Prepare(hold)
	r.controller.Proxies(hold)
	c, n := r.converting, 0
	until := time.Now().Add(c.within)
	for _, o := range c.Objects {
		from := (&object{Object: o}).GroupVersionKind().Version
		for _, via := range c.Versions {
			if via == from {
				continue
			}
			if _, err := r.controller.Activity(); err != nil {
				return err
			}
			if n++; time.Now().After(until) {
				c.result.Left++
				continue
			}
			if err := r.trip(ctx, o, from, via, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// trip sends one object from its version through another one and back.
func (r *run) trip(ctx context.Context, o map[string]any, from, via string, n int) error {
	c, sent := r.converting, named(o, n)
	first := r.convertedAs(from)
	created, err := answered(ctx, func() (*object, error) { return first.Create(ctx, sent.DeepCopy(), metav1.CreateOptions{}) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t := conversion.Trip{Kind: c.Kind, From: from, Via: via, Storage: c.Storage, Sent: sent.Object}
	if err != nil {
		c.result.Refused++
		c.fail(from, from+" objects are refused, such as one with the error", err)
		if apierrors.IsInternalError(err) { // the conversion failed, while an invalid object says nothing about it
			c.trips = append(c.trips, t)
		}
		return nil
	}
	t.Created = created.Object
	back, failed, err := thereAndBack(ctx, first, r.convertedAs(via), created)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		c.fail(from+failed+via, fmt.Sprintf("an object of %s %s as %s", from, failed, via), err)
	}
	if back != nil {
		t.Back = back.Object
		c.result.Made++
	}
	c.trips = append(c.trips, t)
	_ = first.Delete(ctx, sent.GetName(), metav1.DeleteOptions{}) // otherwise, the next reset deletes it
	return nil
}

// thereAndBack reads an object in another version, writes it back there, and reads it in the first version
// again. It returns nil if this fails, with the request that did, and if somebody else has changed the object.
func thereAndBack(ctx context.Context, first, other dynamic.ResourceInterface, created *object) (back *object, failed string, err error) {
	name := created.GetName()
	read, err := answered(ctx, func() (*object, error) { return other.Get(ctx, name, metav1.GetOptions{}) })
	if err != nil {
		return nil, "cannot be read", err
	}
	written, err := answered(ctx, func() (*object, error) { return other.Update(ctx, read, metav1.UpdateOptions{}) })
	if err != nil {
		return nil, "is refused when it is written back", err
	}
	back, err = answered(ctx, func() (*object, error) { return first.Get(ctx, name, metav1.GetOptions{}) })
	if err != nil {
		return nil, "cannot be read after it was written back", err
	}
	if read.GetResourceVersion() != created.GetResourceVersion() || back.GetResourceVersion() != written.GetResourceVersion() {
		return nil, "", nil
	}
	return back, "", nil
}

// named returns an object with a name of its own, and with the label and the annotation that must be kept.
func named(o map[string]any, n int) *object {
	sent := (&object{Object: o}).DeepCopy()
	sent.SetName(fmt.Sprintf("%s-%d", sent.GetName(), n))
	for _, set := range []struct {
		of  func() map[string]string
		add func(map[string]string)
	}{{sent.GetLabels, sent.SetLabels}, {sent.GetAnnotations, sent.SetAnnotations}} {
		values := set.of()
		if values == nil {
			values = map[string]string{}
		}
		values[keptKey] = keptValue
		set.add(values)
	}
	return sent
}

// fail notes the first failure of each kind.
func (c *converting) fail(key, what string, err error) {
	if c.failed[key] == "" {
		c.failed[key] = scrub.Known.Text(c.Kind + ": " + what + ": " + err.Error())
	}
}

// convertedAs returns the client for one version of the kind.
func (r *run) convertedAs(version string) dynamic.ResourceInterface {
	c := r.converting
	resource := r.lab.client.Resource(schema.GroupVersionResource{Group: c.Group, Version: version, Resource: c.Resource})
	if c.Namespaced {
		return resource.Namespace("default")
	}
	return resource
}

// answered repeats a request for a short time while nobody serves the webhook: the controller may have
// just started.
func answered(ctx context.Context, do func() (*object, error)) (o *object, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readWithin, true, func(context.Context) (bool, error) {
		o, err = do()
		return !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "connection refused"), nil
	})
	return o, err
}
