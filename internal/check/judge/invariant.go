package judge

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/invariant"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// violation is a revision in which a rule of the scenario stopped holding.
type violation struct {
	rule   *scenario.Always
	change state.Change
	// object is the canonical name of the object. what names the rule and the object.
	object, what string
	// err is set if the rule cannot be evaluated.
	err error
}

// invariants finds rules of the scenario that do not hold in a revision, although they hold in all
// revisions without the fault.
func invariants(in *input) []Finding {
	if in.meddled() {
		return nil // the controller may report what another client has destroyed
	}
	for _, v := range in.violations() {
		if v.err != nil {
			continue // objects pass through states in which a rule cannot be evaluated
		}
		if !slices.Contains(in.ref.Broken, v.what) && !in.touched(v) {
			return []Finding{in.violated(v, "")}
		}
	}
	return nil
}

// invariantsAlone finds rules that do not hold in a revision of a run without a fault. A single run
// is enough, because the scenario demands that the rule holds in every run.
func invariantsAlone(inputs []*input) (findings []Finding) {
	seen := map[string]bool{}
	for _, in := range inputs {
		for _, v := range in.violations() {
			if !seen[v.what] {
				seen[v.what] = true
				findings = append(findings, in.violated(v, "even without a fault, "))
			}
		}
	}
	return findings
}

// violations evaluates the rules of the scenario in each revision, and returns the first violation
// for each rule and object. If a rule does not hold in several revisions of an object one after the
// other, the first of them is the violation. The exception is a rule that compares two revisions.
func (in *input) violations() (found []violation) {
	for i := range in.ref.Scenario.Always {
		rule := &in.ref.Scenario.Always[i]
		compiled, err := invariant.Compile(rule.Expr)
		if err != nil {
			continue // the scenario could not have been loaded
		}
		seen := map[string]bool{}
		for _, c := range in.run.History.Changes {
			v := violation{rule: rule, change: c, object: in.labels.Of(c.Ref)}
			v.what = rule.Name + " " + v.object
			if c.After == nil || seen[v.what] || !rule.Match.Selects(c.Ref, c.After) {
				continue
			}
			var holds bool
			if holds, v.err = compiled.Holds(c.After, c.Before); holds || continues(compiled, rule, c) {
				continue
			}
			if v.err != nil { // a later revision may still break the rule
				if v.what += " cannot be evaluated"; seen[v.what] {
					continue
				}
			}
			seen[v.what] = true
			found = append(found, v)
		}
	}
	slices.SortStableFunc(found, func(a, b violation) int { return int(a.change.Revision - b.change.Revision) })
	return found
}

// continues reports whether the rule did not hold in the previous revision either.
func continues(compiled *invariant.Rule, rule *scenario.Always, c state.Change) bool {
	if c.Before == nil || compiled.Compares() || !rule.Match.Selects(c.Ref, c.Before) {
		return false
	}
	held, _ := compiled.Holds(c.Before, nil)
	return !held
}

// touched reports whether the checker itself may have caused a violation: it touched the metadata of
// the object.
func (in *input) touched(v violation) bool {
	return in.writeOf(v.change.Revision) == nil && v.change.Before != nil && sameButMetadata(v.change.Before, v.change.After)
}

func sameButMetadata(a, b state.Object) bool {
	return reflect.DeepEqual(content(a), content(b)) && reflect.DeepEqual(a["status"], b["status"])
}

// violated makes the finding for a violation. prefix is the beginning of its sentence.
func (in *input) violated(v violation, prefix string) Finding {
	by, writer := "another client", in.writeOf(v.change.Revision)
	if writer != nil {
		by = in.request(writer.Call)
	}
	outcome := fmt.Sprintf("%s%s breaks the rule %q in revision %d, written by %s", prefix, v.object, v.rule.Name, v.change.Revision, by)
	f := in.finding(Invariant, in.stepAt(v.change.Revision), outcome,
		[]state.Difference{{Object: v.object, Path: "(" + v.rule.Name + ")", Want: v.rule.Expr, Got: "false"}})
	if v.err != nil {
		f.Differences[0].Got = v.err.Error()
	}
	if writer != nil {
		f.LastAction = by
	}
	f.Detail = strings.Join(in.changedFields(v), "\n")
	return f
}

// mostFields is the number of changed fields that a finding lists.
const mostFields = 4

var words = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// changedFields returns lines with the fields that the violating revision changed, and whose names
// are in the expression.
func (in *input) changedFields(v violation) (lines []string) {
	if v.change.Before == nil {
		return nil
	}
	mentioned := words.FindAllString(v.rule.Expr, -1)
	before, after := state.Snapshot{v.change.Ref: v.change.Before}, state.Snapshot{v.change.Ref: v.change.After}
	for _, d := range in.ref.Mask.Canonical(before).Diff(in.ref.Mask.Canonical(after)) {
		parts := words.FindAllString(d.Path, -1)
		if len(lines) < mostFields && len(parts) > 0 && slices.ContainsFunc(parts[min(1, len(parts)-1):], func(part string) bool { return slices.Contains(mentioned, part) }) {
			lines = append(lines, fmt.Sprintf("changed: %s from %s to %s", d.Path, orNothing(d.Want), orNothing(d.Got)))
		}
	}
	return lines
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return shorten(value, mostColumns)
}

// unevaluated returns an error if a rule of the scenario cannot be evaluated in a run.
func (in *input) unevaluated() error {
	for _, v := range in.violations() {
		if v.err != nil {
			return fmt.Errorf("always: the rule %q cannot be evaluated for %s in revision %d: %w; test for optional fields with has(), or with ? as in object.?status.phase.orValue('')",
				v.rule.Name, v.object, v.change.Revision, v.err)
		}
	}
	return nil
}
