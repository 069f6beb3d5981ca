package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// lost finds values that users have stored, and that they can no longer read: in the versions of the API
// that both versions of the controller serve, and after the way back, in all versions.
func (r *run) lost() (findings []judge.Finding) {
	before, known := r.Readings[""]
	if !known || r.Fresh {
		return nil
	}
	done := map[string]bool{}
	for _, step := range []string{Up, Down} {
		after, reached := r.Readings[step]
		if !reached || r.find(step) == nil {
			continue
		}
		for _, version := range slices.Sorted(maps.Keys(before.Versions)) {
			findings = append(findings, r.unreadable(step, version, before, after)...)
			findings = append(findings, r.lostIn(step, version, before, after, done)...)
		}
	}
	return findings
}

// unreadable finds a version of the API that is still served, but in which no object can be read.
func (r *run) unreadable(step, version string, before, after Reading) (findings []judge.Finding) {
	for _, what := range slices.Sorted(maps.Keys(after.Failed)) {
		if !strings.HasPrefix(what, version+" ") || before.Failed[what] != "" {
			continue
		}
		findings = append(findings, judge.Upgraded(judge.DataLost, r.Run, step, what, fmt.Sprintf("the stored objects of %s can no longer be read: %s", what, after.Failed[what]), nil))
	}
	return findings
}

// lostIn compares the objects of users in one version of the API. done holds the places that were
// reported before.
func (r *run) lostIn(step, version string, before, after Reading, done map[string]bool) (findings []judge.Finding) {
	for _, ref := range sortedRefs(before.Versions[version]) {
		manifest := r.declared(ref)
		if manifest == nil || !after.serves(version, ref.Kind) {
			continue
		}
		was, is := before.Versions[version][ref], after.Versions[version][ref]
		key := r.labels.Of(ref)
		var lost []state.Difference
		switch {
		case is == nil:
			lost = []state.Difference{{Object: key, Want: "there"}}
		case manifest["apiVersion"] == version:
			// The controller may have changed the spec, and the schema may have other defaults, so only
			// what the user has written counts.
			lost = missing(key, content(manifest), content(was), content(is))
		case was.Generation() == is.Generation():
			written := content(was)
			delete(written, "metadata") // the controller may set labels
			lost = missing(key, written, content(was), content(is))
		}
		lost = slices.DeleteFunc(lost, func(d state.Difference) bool { return done[version+d.Object+" "+d.Path] })
		for _, d := range lost {
			done[version+d.Object+" "+d.Path] = true
		}
		if len(lost) > 0 {
			findings = append(findings, judge.Upgraded(judge.DataLost, r.Run, step, version, r.lostSentence(step, key, version, lost), lost))
		}
	}
	return findings
}

func (r *run) lostSentence(step, key, version string, lost []state.Difference) string {
	what := lost[0].Path + " of " + key
	if lost[0].Path == "" {
		what = key
	}
	if more := len(lost) - 1; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	when := "after the upgrade"
	if step == Down {
		when = "after the upgrade and the way back"
	}
	return fmt.Sprintf("%s, which a user has stored, is lost or different in %s %s", what, version, when)
}

// serves reports whether the objects of a kind could be read in a version.
func (r *Reading) serves(version, kind string) bool {
	if r.Served == nil {
		return r.Versions[version] != nil
	}
	return r.Served[version+" "+kind]
}

// content returns what users write: everything except the status and the metadata, of which only labels
// remain.
func content(object state.Object) map[string]any {
	kept := map[string]any{}
	for key, value := range object {
		if key != "status" && key != "metadata" && key != "apiVersion" && key != "kind" {
			kept[key] = value
		}
	}
	metadata := map[string]any{}
	if labels := object.Labels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(metadata) > 0 {
		kept["metadata"] = metadata
	}
	return kept
}

// missing returns the fields of written that have another value in is than in was.
func missing(object string, written, was, is map[string]any) (lost []state.Difference) {
	for _, d := range fieldDifferences(object, "", was, is) {
		if d.Want != "" && has(written, d.Path) {
			lost = append(lost, d)
		}
	}
	return lost
}

// has reports whether a value contains a path, as fieldDifferences writes it.
func has(value any, path string) bool {
	for _, d := range fieldDifferences("", "", value, map[string]any{}) {
		if d.Path == path || below(path, d.Path) || below(d.Path, path) {
			return true
		}
	}
	return false
}

// below reports whether a path leads to a part of the value at another path.
func below(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

func sortedRefs(objects map[state.Ref]state.Object) []state.Ref {
	return slices.SortedFunc(maps.Keys(objects), func(a, b state.Ref) int {
		return strings.Compare(a.String()+" "+a.Namespace+"/"+a.Name, b.String()+" "+b.Namespace+"/"+b.Name)
	})
}
