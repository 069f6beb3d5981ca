package state

import (
	"slices"
	"strings"
)

// place locates a value: in an object of a kind, after a step of the scenario.
type place struct {
	kind string
	// object is the canonical name. object is empty if the object is unknown, as in the body of a
	// request: then the rules of all objects of the kind apply.
	object string
	// step is empty if the step is unknown: then the rules of all steps apply.
	step string
}

// Scopes holds learned rules, keyed by the canonical name of an object, then by step, and then by
// path. The step "" stands for all steps.
//
// A field that differs once, in one object after one step, proves nothing about other objects or
// other steps. So a rule begins with this narrow scope. The rule is widened to all steps of the
// object if the field differs after two steps, and to the kind if the field differs in two objects
// of the kind.
type Scopes map[string]map[string]map[string]Rule

// every stands for all steps in Scopes.
const every = ""

// learnt returns the strictest learned rule for a field.
func (m *Mask) learnt(at place, field string) Rule {
	strictest := m.Learnt[at.kind][field]
	consider := func(rule Rule) {
		if strictness[rule] > strictness[strictest] {
			strictest = rule
		}
	}
	if at.object == "" {
		m.init()
		consider(m.union[at.kind][field])
		return strictest
	}
	for step, rules := range m.Scoped[at.object] {
		if step == every || at.step == "" || step == at.step {
			consider(rules[field])
		}
	}
	return strictest
}

// set makes the rule for a field stricter, and reports whether that changed anything.
func (m *Mask) set(at place, field string, rule Rule) bool {
	if strictness[m.learnt(at, field)] >= strictness[rule] {
		return false
	}
	m.scope(at.object, at.step, field, rule)
	if rule, n := m.mildest(at.object, field); n > 1 {
		m.scope(at.object, every, field, rule)
	}
	var mildest Rule
	objects := 0
	for object := range m.Scoped {
		if kindOf(object) != at.kind {
			continue
		}
		if rule, n := m.mildest(object, field); n > 0 {
			if objects++; objects == 1 || strictness[rule] < strictness[mildest] {
				mildest = rule
			}
		}
	}
	if objects > 1 {
		into(&m.Learnt, at.kind, field, mildest)
	}
	return true
}

// mildest returns the mildest rule that an object has for a field after single steps, and
// the number of these steps.
func (m *Mask) mildest(object, field string) (mildest Rule, steps int) {
	for step, rules := range m.Scoped[object] {
		rule, has := rules[field]
		if !has || step == every {
			continue
		}
		if steps++; steps == 1 || strictness[rule] < strictness[mildest] {
			mildest = rule
		}
	}
	return mildest, steps
}

func (m *Mask) scope(object, step, field string, rule Rule) {
	if m.Scoped == nil {
		m.Scoped = Scopes{}
	}
	rules := m.Scoped[object]
	into(&rules, step, field, rule)
	m.Scoped[object] = rules
}

// into sets a rule, unless there is a stricter one.
func into(rules *map[string]map[string]Rule, key, field string, rule Rule) {
	if *rules == nil {
		*rules = map[string]map[string]Rule{}
	}
	if (*rules)[key] == nil {
		(*rules)[key] = map[string]Rule{}
	}
	if strictness[rule] > strictness[(*rules)[key][field]] {
		(*rules)[key][field] = rule
	}
}

// unite returns the rules of all objects, merged by kind.
func (m *Mask) unite() map[string]map[string]Rule {
	var union map[string]map[string]Rule
	for object, steps := range m.Scoped {
		for _, rules := range steps {
			for field, rule := range rules {
				into(&union, kindOf(object), field, rule)
			}
		}
	}
	for kind, rules := range m.Learnt {
		for field, rule := range rules {
			into(&union, kind, field, rule)
		}
	}
	return union
}

// Random reports whether the values of a field are compared only with each other, in any
// step.
func (m *Mask) Random(object, field string) bool {
	return m != nil && m.learnt(place{kindOf(object), object, ""}, field) == Random
}

// Bare returns a copy of a canonical content without the fields whose values are not compared
// exactly, according to the learned rules of an object after a step. Bare is used to compare
// another object with this object.
func (m *Mask) Bare(object, step string, content any) any {
	return m.bare(place{kindOf(object), object, step}, "", content)
}

func (m *Mask) bare(at place, field string, content any) any {
	switch typed := content.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, value := range typed {
			if path := join(field, key); strictness[m.learnt(at, path)] <= strictness[Set] {
				kept[key] = m.bare(at, path, value)
			}
		}
		return kept
	case []any:
		var kept []any
		for _, item := range typed {
			if path := join(field, "[]"); strictness[m.learnt(at, path)] <= strictness[Set] {
				kept = append(kept, m.bare(at, path, item))
			}
		}
		return kept
	}
	return content
}

// scarce marks an object as missing from some runs after a step.
func (m *Mask) scarce(object, step string) bool {
	if m.Scarce == nil {
		m.Scarce = map[string][]string{}
	}
	if slices.Contains(m.Scarce[object], step) {
		return false
	}
	m.Scarce[object] = append(m.Scarce[object], step)
	slices.Sort(m.Scarce[object])
	if !slices.Contains(m.Objects, object) {
		m.Objects = append(m.Objects, object)
		slices.Sort(m.Objects)
	}
	return true
}

// isScarce reports whether an object is not compared after a step.
func (m *Mask) isScarce(object, step string) bool {
	if !slices.Contains(m.Objects, object) {
		return false
	}
	steps := m.Scarce[object]
	return step == "" || len(steps) != 1 || steps[0] == step
}

// narrow calls visit for each learned rule that no wider rule covers, with the rule's kind or
// object, and with the step if the rule applies to only one step.
func (m *Mask) narrow(visit func(where, step, field string, rule Rule)) {
	for kind, rules := range m.Learnt {
		for field, rule := range rules {
			visit(kind, "", field, rule)
		}
	}
	for object, steps := range m.Scoped {
		for step, rules := range steps {
			for field, rule := range rules {
				wider := m.Learnt[kindOf(object)][field]
				if step != every && strictness[steps[every][field]] > strictness[wider] {
					wider = steps[every][field]
				}
				if strictness[rule] > strictness[wider] {
					visit(object, step, field, rule)
				}
			}
		}
	}
}

// Unseen lists the fields outside status and metadata whose values are not compared, each
// as "spec.replicas of Deployment.apps default/web".
func (m *Mask) Unseen() []string {
	if m == nil {
		return nil
	}
	var fields []string
	m.narrow(func(where, step, field string, rule Rule) {
		if rule == Set || strings.HasPrefix(field, "status") || strings.HasPrefix(field, "metadata") {
			return
		}
		text := display(field) + " of " + where
		if !strings.Contains(where, " ") {
			text = display(field) + " of every " + where
		}
		if step != "" {
			text += " after step " + step
		}
		fields = append(fields, text)
	})
	slices.Sort(fields)
	return fields
}
