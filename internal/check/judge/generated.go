package judge

import (
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

var (
	// secretive matches the names of fields that hold a credential.
	secretive = regexp.MustCompile(`(?i)(password|passwd|passphrase|token|secret|credentials?|(api|access|auth|private|encryption|signing)[-_]?key)$`)
	// dependents matches the names of fields whose values follow from other values, or change
	// with time or with the process.
	dependents = regexp.MustCompile(`(?i)hash|checksum|sha\d|digest|sum$|fingerprint|revision|version|generation|etag|template|time|date|expir|name|ref$|reason|message|log|url|host|address|ip$|node|pod|instance|leader|holder|session|fenc|lock|continue|resume|page|request|last|previous|current|observed|next|nonce|trace|job|run`)
	// opaque matches texts without spaces that are long enough to be generated.
	opaque = regexp.MustCompile(`^[A-Za-z0-9+/=_.:!@#$%^&*~-]{8,}$`)
	uuid   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	// dated matches texts with a time or a long number.
	dated = regexp.MustCompile(`\d{8,}|^[\d.:-]+$`)
)

// shortestIdentifier is the minimum length, in characters, of a value that may be a generated
// identifier. This minimum does not apply if the name of the field indicates a credential.
const shortestIdentifier = 12

// renewedTexts returns the random texts that differ between two versions of an object, and that
// look generated. renewedTexts compares canonical contents, in which names and UIDs of objects are
// the same in every run, and omits lists, whose elements may have moved.
func renewedTexts(m *state.Mask, labels *state.Labels, ref state.Ref, was, is state.Object) (places []place) {
	key := labels.Of(ref)
	old, _ := m.Content(labels, ref, was, false).(map[string]any)
	fresh, _ := m.Content(labels, ref, is, false).(map[string]any)
	eachText(nil, old, fresh, func(keys []string, old, fresh string) {
		path := strings.Join(keys, ".")
		if isRandom(m, key, path, old) && isGenerated(path, old) && isGenerated(path, fresh) {
			places = append(places, place{key, path, slices.Clone(keys), false})
		}
	})
	return places
}

// eachText calls a function for each text that differs.
func eachText(keys []string, old, fresh map[string]any, visit func(keys []string, old, fresh string)) {
	for key, value := range old {
		at := append(slices.Clone(keys), key)
		switch typed := value.(type) {
		case map[string]any:
			if inner, ok := fresh[key].(map[string]any); ok {
				eachText(at, typed, inner, visit)
			}
		case string:
			if other, ok := fresh[key].(string); ok && other != typed {
				visit(at, typed, other)
			}
		}
	}
}

// isRandom reports whether a text differs in each run. Canonical contents contain no UUIDs of
// objects, so every UUID in them is random.
func isRandom(m *state.Mask, object, path, value string) bool {
	return m.Random(object, path) || uuid.MatchString(value)
}

// isGenerated reports whether a value looks like a generated credential or identifier, rather
// than like a time, a number, or a text for people.
func isGenerated(path, value string) bool {
	if !opaque.MatchString(value) || dated.MatchString(value) && !uuid.MatchString(value) || dependents.MatchString(lastKey(path)) {
		return false
	}
	return isCredential(path) || len(value) >= shortestIdentifier
}

// isCredential reports whether the name of a field indicates a credential.
func isCredential(path string) bool {
	return secretive.MatchString(path) && !dependents.MatchString(lastKey(path))
}

func lastKey(path string) string { return path[strings.LastIndexAny(path, "./")+1:] }

// textAt returns the text at a path, or "".
func textAt(object state.Object, keys []string) string {
	at := map[string]any(object)
	for _, key := range keys[:len(keys)-1] {
		at, _ = at[key].(map[string]any)
	}
	text, _ := at[keys[len(keys)-1]].(string)
	return text
}

// steady returns the places of random values outside of Secrets that a run with disturbances never
// changes. steady ignores a change in a step if the runs without a disturbance change the same
// value in that step as well.
func (r *Reference) steady(run *evidence.Run) (places []string) {
	labels := r.Mask.Label(run.History)
	kept, renewedIn := map[string]bool{}, map[string]bool{}
	for i := 1; i < len(run.Steps); i++ {
		s := r.find(run.Steps[i].Name)
		if s == nil || run.Steps[i].Restless {
			return nil
		}
		at := span{run.Steps[i-1].Rested, run.Steps[i].Rested}
		for _, p := range renewed(r.Mask, labels, run, at) {
			if !slices.Contains(s.Fresh, p.String()) {
				renewedIn[p.String()] = true
			}
		}
		for _, p := range r.randomTexts(labels, run, at) {
			kept[p.String()] = true
		}
	}
	for p := range kept {
		if !renewedIn[p] {
			places = append(places, p)
		}
	}
	slices.Sort(places)
	return places
}

// randomTexts returns the places of random texts that look generated and exist at both ends
// of a span.
func (r *Reference) randomTexts(labels *state.Labels, run *evidence.Run, at span) (places []place) {
	before, after := run.History.At(at.from), run.History.At(at.to)
	for ref, was := range before {
		if was == nil || after[ref] == nil {
			continue
		}
		key := labels.Of(ref)
		content, _ := r.Mask.Content(labels, ref, was, false).(map[string]any)
		eachText(nil, content, withoutTexts(content), func(keys []string, old, _ string) {
			if path := strings.Join(keys, "."); isRandom(r.Mask, key, path, old) && isGenerated(path, old) && textAt(after[ref], keys) != "" {
				places = append(places, place{key, path, keys, false})
			}
		})
	}
	return places
}

// withoutTexts returns a copy of an object's content in which each text is empty.
func withoutTexts(content map[string]any) map[string]any {
	bare := map[string]any{}
	for key, value := range content {
		switch typed := value.(type) {
		case map[string]any:
			bare[key] = withoutTexts(typed)
		case string:
			bare[key] = ""
		}
	}
	return bare
}
