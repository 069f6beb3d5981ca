package state

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

const (
	// mostRounds limits the number of learning rounds. Learning ends before it reaches this
	// limit, because rules only become stricter.
	mostRounds = 200
	// shortestRandom is the minimum length of a random part of a name. Test suites compose the names
	// of namespaces of random words, so shortestWord is the minimum in the name of a namespace.
	shortestRandom, shortestWord = 4, 2
)

// shortest returns the minimum length of a random part in the name of a kind.
func shortest(kind string) int {
	if kind == "Namespace" {
		return shortestWord
	}
	return shortestRandom
}

// Learn compares runs without faults step by step, and masks differences until none is
// left. ignore holds the lines of the scenario's ignore list, each "Kind.group path",
// where * stands for one part of a path or for any kind. A line without a path means all
// objects of the kind.
//
// If names differ, they become a pattern; if the order of a list differs, the list becomes
// a set. If strings differ, the check compares only which places hold the same string; for
// other values, it compares only their types. Objects and fields that only some runs have
// are ignored. Each rule belongs to one object after one step, until more evidence widens
// it; see Scopes. own may be nil.
func Learn(runs []map[string]Snapshot, ignore []string, own Own) *Mask {
	return LearnMore(nil, runs, ignore, own)
}

// LearnMore is like Learn, but also uses the generated names that another mask knows. known may be
// nil.
func LearnMore(known *Mask, runs []map[string]Snapshot, ignore []string, own Own) *Mask {
	m := &Mask{Configured: ignore, Own: own}
	if known != nil {
		m.Names, m.Seen = maps.Clone(known.Names), known.Seen
	}
	for range mostRounds {
		if !m.round(runs) {
			break
		}
		m = m.fresh()
	}
	m.see(runs)
	return m.fresh()
}

// fresh returns a copy of the mask whose unexported fields are not compiled yet.
func (m *Mask) fresh() *Mask {
	return &Mask{Configured: m.Configured, Learnt: m.Learnt, Scoped: m.Scoped, Objects: m.Objects, Scarce: m.Scarce, Own: m.Own, Names: m.Names, Seen: m.Seen}
}

// round compares the first run with each of the others, and learns rules from the differences.
// round tries the mildest rule first, because a mild rule may already explain the remaining
// differences.
func (m *Mask) round(runs []map[string]Snapshot) (learnt bool) {
	var gaps []gap
	stable := m.stableNames(runs)
	for _, step := range steps(runs) {
		first := m.CanonicalAfter(step, runs[0][step])
		for _, run := range runs[1:] {
			found := first.gaps(m.CanonicalAfter(step, run[step]))
			for i := range found {
				found[i].step = step
			}
			if m.learnNames(found, stable) {
				learnt = true
			}
			gaps = append(gaps, found...)
		}
	}
	if learnt {
		return true
	}
	for _, g := range gaps {
		if g.order && m.set(g.place(), g.field, Set) {
			learnt = true
		}
	}
	if learnt {
		return true
	}
	// Make each rule only one step stricter per round, even if its field differs in several
	// runs.
	done := map[string]bool{}
	for _, g := range gaps {
		if at := strings.Join([]string{g.step, g.Object, g.field}, "\n"); g.Path == "" || !done[at] {
			done[at] = true
			learnt = m.learnValue(g, gaps) || learnt
		}
	}
	return learnt
}

// Unexplained returns the differences between runs that the mask does not hide, by step. If
// Learn made the mask from the same runs, no differences are left.
func (m *Mask) Unexplained(runs []map[string]Snapshot) map[string][]Difference {
	left := map[string][]Difference{}
	for _, step := range steps(runs) {
		first := m.CanonicalAfter(step, runs[0][step])
		for _, run := range runs[1:] {
			if d := first.Diff(m.CanonicalAfter(step, run[step])); len(d) > 0 {
				left[step] = append(left[step], d...)
			}
		}
	}
	return left
}

func steps(runs []map[string]Snapshot) []string {
	all := map[string]bool{}
	for _, run := range runs {
		for step := range run {
			all[step] = true
		}
	}
	return sortedKeys(all)
}

func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, " ")
	return kind
}

func (g gap) place() place { return place{kindOf(g.Object), g.Object, g.step} }

// learnValue makes the rule for a field stricter if possible, and reports whether it changed the
// rule.
func (m *Mask) learnValue(g gap, all []gap) bool {
	if g.Path == "" {
		return m.scarce(g.Object, g.step)
	}
	at := g.place()
	if parent, ok := randomKeys(g, all); ok && m.set(at, parent, Keys) {
		return true
	}
	_, wasString := g.want.(string)
	_, isString := g.got.(string)
	rule := m.learnt(at, g.field)
	switch {
	case jsonType(g.want) != jsonType(g.got):
		return m.set(at, g.field, Ignore)
	case wasString && isString && strictness[rule] < strictness[Random]:
		return m.set(at, g.field, Random)
	case isScalar(g.want) && strictness[rule] < strictness[Type]:
		return m.set(at, g.field, Type)
	}
	return m.set(at, g.field, Ignore)
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// randomKeys reports whether the keys of a map are random. Keys count as random if each
// of two runs has keys that the other lacks.
func randomKeys(g gap, all []gap) (parent string, ok bool) {
	dot := strings.LastIndexByte(g.field, '.')
	if dot < 0 || (g.want == nil) == (g.got == nil) || strings.HasSuffix(g.field, "[]") {
		return "", false
	}
	for _, key := range []string{"annotations.", "labels.", "data.", "matchLabels."} {
		// Keys of annotations, labels and data may contain dots.
		if i := strings.Index(g.field, key); i >= 0 {
			dot = i + len(key) - 1
			break
		}
	}
	parent = g.field[:dot]
	for _, other := range all {
		if other.Object == g.Object && other.step == g.step && other.field != g.field && strings.HasPrefix(other.field, parent+".") &&
			(other.want == nil) == (g.got == nil) && (other.got == nil) == (g.want == nil) &&
			!strings.Contains(other.field[dot+1:], "[]") {
			return parent, true
		}
	}
	return "", false
}

// learnNames finds patterns in names that exist in only one of two runs. A name that exists in all
// runs, if not after the same steps, is not random.
func (m *Mask) learnNames(gaps []gap, stable map[string][]string) (learnt bool) {
	missing, extra := map[string][]string{}, map[string][]string{}
	for _, g := range gaps {
		if g.Path != "" {
			continue
		}
		place, name := placeAndName(g.Object)
		if slices.Contains(stable[kindOf(place)], name) {
			continue
		}
		if g.Got == "" {
			missing[place] = append(missing[place], name)
		} else {
			extra[place] = append(extra[place], name)
		}
	}
	for place, names := range missing {
		for _, a := range names {
			if p := bestPattern(a, extra[place], shortest(kindOf(place))); p != "" && m.addName(kindOf(place), p, stable[kindOf(place)]) {
				learnt = true
			}
		}
	}
	return learnt
}

// placeAndName splits "Kind namespace/name" before the name.
func placeAndName(object string) (place, name string) {
	i := strings.LastIndexAny(object, " /")
	return object[:i+1], object[i+1:]
}

// bestPattern returns the pattern that fits both a name and the most similar of the other names. A
// pattern with random parts that are shorter than usual must have a fixed part as well.
func bestPattern(name string, others []string, shortest int) string {
	best, fixed := "", -1
	if shortest < shortestRandom {
		fixed = 0
	}
	for _, other := range others {
		a, b := strings.Split(name, "-"), strings.Split(other, "-")
		if len(a) != len(b) {
			continue
		}
		parts, n := make([]string, len(a)), 0
		fits := true
		for i := range a {
			switch {
			case a[i] == b[i]:
				parts[i] = a[i]
				n += len(a[i])
			case len(a[i]) >= shortest && len(b[i]) >= shortest:
				parts[i] = "*"
			default:
				fits = false
			}
		}
		if fits && n > fixed {
			best, fixed = strings.Join(parts, "-"), n
		}
	}
	return best
}

func (m *Mask) addName(kind, pattern string, stable []string) bool {
	for _, p := range m.Names[kind] {
		if p.Pattern == pattern {
			return false
		}
	}
	p := NamePattern{Pattern: pattern}
	if least := shortest(kind); least != shortestRandom {
		p.Shortest = least
	}
	for _, name := range stable {
		if p.fits(name) {
			p.Not = append(p.Not, name)
		}
	}
	if m.Names == nil {
		m.Names = map[string][]NamePattern{}
	}
	m.Names[kind] = append(m.Names[kind], p)
	sort.Slice(m.Names[kind], func(i, j int) bool { return m.Names[kind][i].Pattern < m.Names[kind][j].Pattern })
	return true
}

// stableNames returns the names that exist in all runs, by kind.
func (m *Mask) stableNames(runs []map[string]Snapshot) map[string][]string {
	count := map[string]map[string]int{}
	for _, run := range runs {
		seen := map[string]bool{}
		for _, snapshot := range run {
			for ref := range snapshot {
				kind := ref.String()
				if seen[kind+" "+ref.Name] {
					continue
				}
				seen[kind+" "+ref.Name] = true
				if count[kind] == nil {
					count[kind] = map[string]int{}
				}
				count[kind][ref.Name]++
			}
		}
	}
	stable := map[string][]string{}
	for kind, names := range count {
		for _, name := range sortedKeys(names) {
			if names[name] == len(runs) {
				stable[kind] = append(stable[kind], name)
			}
		}
	}
	return stable
}

// see records the canonical forms of all generated names.
func (m *Mask) see(runs []map[string]Snapshot) {
	found := map[string]bool{}
	for _, name := range m.Seen {
		found[name] = true
	}
	for _, run := range runs {
		for _, snapshot := range run {
			for ref, name := range m.labelSnapshot(snapshot).names {
				// A name that consists only of * and dashes would match every word.
				if !ownKind(ref.GroupKind) && strings.Contains(name, "*") && strings.Trim(name, "*-") != "" && !strings.Contains(name, ":") {
					found[name] = true
				}
			}
		}
	}
	m.Seen = sortedKeys(found)
	sort.SliceStable(m.Seen, func(i, j int) bool { return len(m.Seen[i]) > len(m.Seen[j]) })
}
