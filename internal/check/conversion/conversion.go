// Package conversion judges the webhooks that convert custom resources: an object that is written in one
// version, read in another one and written back unchanged must be the same in the first version. The
// package is a chain of pure functions over the objects as the API server has answered.
//
//	sent ──create, version A──▶ Created ──get, version B, update──▶ get, version A ──▶ Back
//	  └──────── losses ────────────┘└──────────────── losses ─────────────────────────────┘
package conversion

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Trip is the way of one object through the versions of its kind.
type Trip struct {
	// Kind is the kind as "Kind.group".
	Kind string
	// From is the version in which the object is written, and Via the one in which it is read and
	// written back. Storage is the version in which it is stored.
	From, Via, Storage string
	// Sent is the object that was created, Created the answer, and Back the object at the end. All
	// have the version From. Created is nil if the API server failed to create the object, and Back if the
	// object could not be written back.
	Sent, Created, Back map[string]any
}

// Finding is a finding with the object that shows it.
type Finding struct {
	judge.Finding
	Object map[string]any `json:"object"`
}

// Name returns the name under which the conversion from one version to another and back is reported. It
// has the form of the name of a scenario, and includes the group, because the same kind may exist in several
// groups. A long name is cut, and ends with a hash instead.
func Name(kind, from, via string) string {
	name := strings.ToLower(strings.ReplaceAll(kind, ".", "-"))
	versions := "-" + from + "-to-" + via
	if room := validation.DNS1123LabelMaxLength - len(versions); len(name) > room {
		sum := sha256.Sum256([]byte(name))
		hash := "-" + hex.EncodeToString(sum[:4])
		name = name[:max(room-len(hash), 0)] + hash
	}
	return name + versions
}

// Judge returns a finding for each pair of versions between which a value is lost, unless allows reports that
// the project accepts this. If several values are lost, the finding has the object of the first one.
func Judge(trips []Trip, allows func(kind, path string) bool) (findings []Finding) {
	pairs := map[string]*pair{}
	add := func(t Trip, via string, back bool, want, got map[string]any) {
		lost := slices.DeleteFunc(losses("", content(t.Sent, want), content(t.Sent, got)), func(l Loss) bool { return allows(t.Kind, l.Path) })
		if len(lost) == 0 {
			return
		}
		name := Name(t.Kind, t.From, via)
		if pairs[name] == nil {
			pairs[name] = &pair{kind: t.Kind, from: t.From, via: via, object: t.Sent, back: back}
		}
		pairs[name].add(lost)
	}
	for _, t := range trips {
		if t.From != t.Storage && t.Created != nil {
			add(t, t.Storage, false, t.Sent, t.Created)
		}
		if t.Back != nil {
			add(t, t.Via, true, t.Created, t.Back)
		}
	}
	for _, p := range pairs {
		findings = append(findings, Finding{p.finding(), p.object})
	}
	slices.SortFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Scenario, b.Scenario) })
	return findings
}

// Complete returns the names of those conversions in which each object came back, so that nothing was lost
// unseen.
func Complete(trips []Trip) (names []string) {
	complete := map[string]bool{}
	for _, t := range trips {
		name := Name(t.Kind, t.From, t.Via)
		before, known := complete[name]
		complete[name] = t.Back != nil && (before || !known)
	}
	for _, name := range slices.Sorted(maps.Keys(complete)) {
		if complete[name] {
			names = append(names, name)
		}
	}
	return names
}

// content returns what users write: everything except the status and the metadata, of which only those
// labels and annotations remain that were sent.
func content(sent, object map[string]any) map[string]any {
	kept := map[string]any{}
	for key, value := range object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key) {
			kept[key] = value
		}
	}
	metadata := map[string]any{}
	for _, name := range []string{"labels", "annotations"} {
		written := map[string]any{}
		for key := range within(sent, name) {
			if value, there := within(object, name)[key]; there {
				written[key] = value
			}
		}
		metadata[name] = written
	}
	kept["metadata"] = metadata
	return kept
}

// within returns the labels or the annotations of an object.
func within(object map[string]any, name string) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	values, _ := metadata[name].(map[string]any)
	return values
}

// pair collects what is lost between two versions.
type pair struct {
	kind, from, via string
	object          map[string]any
	back            bool // the object was written back
	lost            []Loss
}

// add adds places that are not known yet.
func (p *pair) add(lost []Loss) {
	for _, l := range lost {
		if !slices.ContainsFunc(p.lost, func(known Loss) bool { return known.Path == l.Path }) {
			p.lost = append(p.lost, l)
		}
	}
}

func (p *pair) finding() judge.Finding {
	var differences []state.Difference
	for _, l := range p.lost {
		differences = append(differences, state.Difference{Object: p.kind, Path: l.Path, Want: l.Want, Got: l.Got})
	}
	return judge.Converted(Name(p.kind, p.from, p.via), p.sentence(), differences)
}

func (p *pair) sentence() string {
	kind, _, _ := strings.Cut(p.kind, ".")
	how := "it is read as " + p.via + " and written back unchanged"
	if !p.back {
		how = "it is stored as " + p.via
	}
	first := p.lost[0]
	what := fmt.Sprintf("changes %s from %s to %s", first.Path, first.Want, first.Got)
	if first.Got == "" {
		what = fmt.Sprintf("loses %s, which was %s,", first.Path, first.Want)
	}
	if more := len(p.lost) - 1; more > 0 {
		what = strings.TrimSuffix(what, ",") + fmt.Sprintf(", and %d more,", more)
	}
	return fmt.Sprintf("%s %s %s when %s", p.from, kind, what, how)
}
