package plan

import (
	"encoding/binary"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// interference plans the faults in which other clients change the controller's objects.
func (m *maker) interference() {
	m.meddle()
	for i, s := range m.read.steps {
		if s.say != nil && s.say.Delete != nil {
			m.hold(i)
		}
	}
}

// meddle plans to delete, and to change, one child object of each kind. The faults come
// after the first step that leaves a child object of that kind. One object of each kind is
// enough, because the controller handles all objects of a kind with the same code.
func (m *maker) meddle() {
	done := map[schema.GroupKind]bool{}
	for _, s := range m.read.steps {
		byKind := m.read.standing(s)
		for _, gk := range sortedKinds(byKind) {
			if done[gk] || m.read.noChild(gk) {
				continue
			}
			if why := spared[gk]; why != "" {
				done[gk] = true
				m.skip(fault.Fault{Kind: fault.DeleteChild, Point: fault.Point{Step: s.Name}, Target: m.targetOf(m.pick(byKind[gk]))}, why)
				continue
			}
			lasting, why := m.read.lasting(byKind[gk], s)
			if len(lasting) == 0 {
				m.skip(fault.Fault{Kind: fault.DeleteChild, Point: fault.Point{Step: s.Name}, Target: m.targetOf(m.pick(byKind[gk]))}, why)
				continue
			}
			done[gk] = true
			m.meddleWith(m.pick(lasting), s)
		}
	}
}

// meddleWith plans the deletion and the changes of one object.
func (m *maker) meddleWith(ref state.Ref, s step) {
	point, target := fault.Point{Step: s.Name}, m.targetOf(ref)
	m.propose(fault.Fault{Kind: fault.DeleteChild, Point: point, Target: target}, 0)
	object := m.read.at(ref, s)
	for _, field := range m.read.ownedFields(ref, object) {
		below, known := m.read.changeableBelow(ref, object, field)
		if isSecret(ref) {
			below, known = secretKey(ref, object, field, m.in.All)
		}
		f := fault.Fault{Kind: fault.EditChild, Point: point, Target: target, Field: strings.Join(append([]string{field}, below...), ".")}
		switch {
		case isFixed(m.read.typeOf(ref.GroupKind), field):
			m.skip(f, "the API server refuses to change this field")
		case !known:
			m.skip(f, "no other valid value was found: the value is a list or empty, or a secret that differs between runs")
		default:
			m.propose(f, 2)
		}
	}
	m.meddleWithMetadata(ref, object, point, target)
}

// meddleWithMetadata plans the change of a label, and the removal of the owners, of one object, if the
// controller has set them itself.
func (m *maker) meddleWithMetadata(ref state.Ref, object state.Object, point fault.Point, target string) {
	for _, field := range []string{fault.Labels, fault.Owners} {
		f := fault.Fault{Kind: fault.EditChild, Point: point, Target: target, Field: field}
		said := m.read.said(ref, field)
		switch {
		case valueAt(object, field) == nil:
			continue
		case strings.Contains(target, "*"):
			// The controller may make another one, as a ReplicaSet does, and both have the same canonical
			// name. Without its owners, the object may even have another canonical name.
			m.skip(f, "its name is generated, so it cannot be told from its replacement")
		case !saysSomething(said):
			m.skip(f, "the controller did not set it")
		case field == fault.Labels && !sameLabels(said, valueAt(object, field)):
			m.skip(f, "other clients have set labels as well")
		default:
			m.propose(f, 4)
		}
	}
}

// sameLabels reports whether two values are maps with the same keys, so that each of the labels is one
// that the controller has set.
func sameLabels(said, has any) bool {
	a, ok := said.(map[string]any)
	b, _ := has.(map[string]any)
	if !ok || len(a) != len(b) {
		return false
	}
	for key := range a {
		if _, there := b[key]; !there {
			return false
		}
	}
	return true
}

// pick chooses one object of a kind, depending on the seed.
func (m *maker) pick(refs []state.Ref) state.Ref {
	best, least := refs[0], uint64(0)
	for i, ref := range refs {
		if h := mix(m.in.Seed, m.targetOf(ref)); i == 0 || h < least {
			best, least = ref, h
		}
	}
	return best
}

// mix returns a number that looks random and depends only on the seed and the text.
func mix(seed uint64, text string) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, seed))
	h.Write([]byte(text))
	x := h.Sum64() // the last byte reaches only the low bits in FNV, so mix once more
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// valueAt returns a field of an object.
func valueAt(object state.Object, field string) any {
	var v any = map[string]any(object)
	for _, part := range strings.Split(field, ".") {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	return v
}

// changeable reports whether another value of the same type can be derived: the next
// number, a longer text, the opposite boolean, or a map with such a value.
func changeable(v any) bool {
	switch v := v.(type) {
	case bool, int, int64, float64:
		return true
	case string:
		return !strings.HasPrefix(v, "hmac:") // a hash: the real value is unknown
	case map[string]any:
		for _, inner := range v {
			if changeable(inner) {
				return true
			}
		}
	}
	return false
}

// hold plans a finalizer on the object that a step deletes, and on one object of each kind
// that is deleted with it. The finalizer is added before the step with the deletion begins.
func (m *maker) hold(i int) {
	s := m.read.steps[i]
	d := s.say.Delete
	primary := m.read.named(kindOf(d.ObjectRef), d.Namespace, d.Name)
	if i == 0 {
		m.skip(fault.Fault{Kind: fault.AddFinalizer, Target: m.targetOf(primary)}, "the finalizer would have to be added before the first step")
		return
	}
	point := fault.Point{Step: m.read.steps[i-1].Name}
	m.propose(fault.Fault{Kind: fault.AddFinalizer, Point: point, Target: m.targetOf(primary)}, 1)
	before, after := m.read.standing(m.read.steps[i-1]), m.read.standing(s)
	for _, gk := range sortedKinds(before) {
		going := missing(before[gk], after[gk])
		if len(going) == 0 || m.read.noChild(gk) {
			continue
		}
		m.propose(fault.Fault{Kind: fault.AddFinalizer, Point: point, Target: m.targetOf(m.pick(going))}, 1)
	}
}

// named returns the object that a step names, possibly without its namespace.
func (r *reading) named(kind schema.GroupKind, namespace, name string) state.Ref {
	for _, c := range r.run.History.Changes {
		if c.Ref.GroupKind == kind && c.Ref.Name == name && (namespace == "" || c.Ref.Namespace == namespace) {
			return c.Ref
		}
	}
	return state.Ref{GroupKind: kind, Namespace: namespace, Name: name}
}

func kindOf(ref scenario.ObjectRef) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// missing returns the objects of the first list that are not in the second.
func missing(from, in []state.Ref) []state.Ref {
	there := map[state.Ref]bool{}
	for _, ref := range in {
		there[ref] = true
	}
	var gone []state.Ref
	for _, ref := range from {
		if !there[ref] {
			gone = append(gone, ref)
		}
	}
	return gone
}

// mostLeases limits the number of leader changes in a scenario, because each change has to wait
// until a Lease has expired.
const mostLeases = 2

// leadership plans changes of the leader, in which a second instance takes over. It plans a
// change only before a step in which the controller writes, because only such a step can
// show that two instances write as leaders.
func (m *maker) leadership() {
	probe := fault.Fault{Kind: fault.LoseLease}
	if ok, why := fault.Legal(probe, m.read.facts); !ok {
		m.skip(probe, why)
		return
	}
	n := 0
	for i, s := range m.read.steps {
		f := fault.Fault{Kind: fault.LoseLease, Point: fault.Point{Step: s.Name}}
		switch {
		case i+1 == len(m.read.steps), !m.read.writesIn(m.read.steps[i+1].Name):
			m.skip(f, "the controller writes nothing in the next step")
		case n == mostLeases:
			m.skip(f, "a change of the leader is already planned after two earlier steps")
		default:
			n++
			m.propose(f, 5)
		}
	}
}

// writesIn reports whether the controller changes something in a step.
func (r *reading) writesIn(name string) bool {
	for i := range r.requests {
		if q := &r.requests[i]; q.point.Step == name && r.effective(q) {
			return true
		}
	}
	return false
}
