package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Await waits until what the step says to wait for is so and, if it deletes
// without keep, until the object is gone. It looks every few hundredths of a
// second, until the condition's timeout or the end of ctx; the error says what it
// waited for and what is there instead.
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
		// The first may hold no longer once the last does.
		if st.holds(ctx, c) {
			return nil
		}
	}
}

// holds looks once whether all is as the step waits for.
func (st *Step) holds(ctx context.Context, c Cluster) bool {
	return len(st.Wait) < 2 || !slices.ContainsFunc(st.Wait, func(cond Condition) bool { return cond.look(ctx, c) != "" })
}

// Check looks once, and says in a line each which expectations do not hold.
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
	last := "it was not looked at"
	for pause := 10 * time.Millisecond; ; pause = min(pause*3/2, 100*time.Millisecond) {
		wrong := cond.look(ctx, c)
		if wrong == "" {
			return nil
		}
		// A look that was cut short says nothing about the object.
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
	return ref + " to be there"
}

// look is empty if the condition holds, else a line that says what is there.
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
		return fmt.Sprintf("%s is not there", ref)
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

// lookAtStatus compares a condition of the object's status; want is "Ready" or
// "Ready=False".
func lookAtStatus(object map[string]any, want string) string {
	kind, value, given := strings.Cut(want, "=")
	if !given {
		value = "True"
	}
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] != kind {
			continue
		}
		if condition["status"] == value {
			return ""
		}
		return fmt.Sprintf("condition %s is %v and not %s (%v: %v)", kind, condition["status"], value, condition["reason"], condition["message"])
	}
	return fmt.Sprintf("there is no condition %s", kind)
}

// lookAtField compares what a path leads to. A path with a * or a filter can lead
// to many values; then they are compared as a list.
func lookAtField(object map[string]any, field string, equals json.RawMessage) string {
	found, err := find(object, field)
	switch {
	case err != nil:
		return err.Error()
	case len(found) == 0 && equals == nil:
		return field + " is not there"
	case len(found) == 0 && string(equals) != "[]":
		return fmt.Sprintf("%s is not there, and not %s", field, equals)
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
	return fmt.Sprintf("%s is %s, and not %s", field, quote(is), quote(want))
}

// find is what a path leads to, as JSON has it: all numbers are floats.
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
