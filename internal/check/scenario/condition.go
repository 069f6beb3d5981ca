package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Await waits until all conditions of Wait hold at the same time. If the step deletes an
// object without Keep, it also waits until the object is gone. It polls every few
// hundredths of a second, until the timeout of the condition or the end of ctx. The error
// names the condition and the actual state.
func (st *Step) Await(ctx context.Context, c Cluster) error {
	if d := st.Delete; d != nil && !d.Keep {
		gone := Condition{ObjectRef: d.ObjectRef, Absent: true}
		if err := gone.await(ctx, c); err != nil {
			return fmt.Errorf("step %q: %w", st.Name, err)
		}
	}
	for {
		for i := range st.Wait {
			if err := st.Wait[i].await(ctx, c); err != nil {
				return fmt.Errorf("step %q: %w", st.Name, err)
			}
		}
		// The first condition may no longer hold by the time the last one holds.
		if st.holds(ctx, c) {
			return nil
		}
	}
}

// holds reports whether all conditions of Wait hold now.
func (st *Step) holds(ctx context.Context, c Cluster) bool {
	return len(st.Wait) < 2 || !slices.ContainsFunc(st.Wait, func(cond Condition) bool { return cond.look(ctx, c) != "" })
}

// Check evaluates the expectations of the step once, and returns a line for each that does
// not hold.
func (st *Step) Check(ctx context.Context, c Cluster) []string {
	var failed []string
	for i := range st.Expect {
		if wrong := st.Expect[i].look(ctx, c); wrong != "" {
			failed = append(failed, wrong)
		}
	}
	return failed
}

func (cond *Condition) await(ctx context.Context, c Cluster) error {
	if cond.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(cond.Timeout))
		defer cancel()
	}
	began := time.Now()
	last := "it was never checked"
	for pause := 10 * time.Millisecond; ; pause = min(pause*3/2, 100*time.Millisecond) {
		wrong := cond.look(ctx, c)
		if wrong == "" {
			return nil
		}
		// An interrupted check does not reveal anything about the object.
		if ctx.Err() == nil {
			last = wrong
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %s: %w", time.Since(began).Round(time.Millisecond), cond, last, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func (cond *Condition) String() string {
	ref := cond.ObjectRef.String()
	switch {
	case cond.Absent:
		return ref + " to be gone"
	case cond.Status != "":
		return ref + " to be " + cond.Status
	case cond.Equals != nil:
		return fmt.Sprintf("%s to have %s = %s", ref, cond.Field, cond.Equals)
	case cond.Field != "":
		return ref + " to have " + cond.Field
	}
	return ref + " to exist"
}

// look checks the condition. It returns "" if the condition holds, and otherwise a line
// with the actual state.
func (cond *Condition) look(ctx context.Context, c Cluster) string {
	ref := cond.ObjectRef
	object, err := c.get(ctx, ref)
	switch {
	case notServed(err) && cond.Absent:
		return ""
	case err != nil:
		return fmt.Sprintf("%s: %v", ref, err)
	case cond.Absent && object == nil:
		return ""
	case cond.Absent:
		return fmt.Sprintf("%s %s", ref, remains(object))
	case object == nil:
		return fmt.Sprintf("%s does not exist", ref)
	case cond.Status != "":
		return prefix(ref, lookAtStatus(object, cond.Status))
	case cond.Field != "":
		return prefix(ref, lookAtField(object, cond.Field, c.substituteJSON(cond.Equals)))
	}
	return ""
}

func prefix(ref ObjectRef, wrong string) string {
	if wrong == "" {
		return ""
	}
	return ref.String() + ": " + wrong
}

// lookAtStatus checks a condition in the status of the object. want has the form "Ready"
// or "Ready=False".
func lookAtStatus(object map[string]any, want string) string {
	kind, value, given := strings.Cut(want, "=")
	if !given {
		value = "True"
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(object, "status", "conditions")
	items, _ := conditions.([]any)
	for _, item := range items {
		condition, _ := item.(map[string]any)
		if condition["type"] != kind {
			continue
		}
		if condition["status"] == value {
			return ""
		}
		return fmt.Sprintf("condition %s is %v, not %s (%v: %v)", kind, condition["status"], value, condition["reason"], condition["message"])
	}
	return fmt.Sprintf("there is no condition %s", kind)
}

// lookAtField compares the values at a path with the expected value. A path with a * or a
// filter can match several values, which are compared as a list.
func lookAtField(object map[string]any, field string, equals json.RawMessage) string {
	found, err := find(object, field)
	switch {
	case err != nil:
		return err.Error()
	case len(found) == 0 && equals == nil:
		return field + " is missing"
	case len(found) == 0 && string(equals) != "[]":
		return fmt.Sprintf("%s is missing; want %s", field, equals)
	case equals == nil:
		return ""
	}
	var want any
	if err := json.Unmarshal(equals, &want); err != nil {
		return fmt.Sprintf("equals %s: %v", equals, err)
	}
	if len(found) == 1 && reflect.DeepEqual(found[0], want) || reflect.DeepEqual(found, want) {
		return ""
	}
	is := any(found)
	if len(found) == 1 {
		is = found[0]
	}
	return fmt.Sprintf("%s is %s, not %s", field, quote(is), quote(want))
}

// find returns the values at a path as encoding/json decodes them, with all numbers as
// floats.
func find(object map[string]any, field string) ([]any, error) {
	p, err := fieldPath(field)
	if err != nil {
		return nil, err
	}
	results, err := p.FindResults(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	found := []any{}
	for _, group := range results {
		for _, value := range group {
			found = append(found, value.Interface())
		}
	}
	data, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return found, json.Unmarshal(data, &found)
}
