// Package exposure finds values of Secrets in places that are not secret: in other objects, and in
// the output of the controller. It runs in the lab, where the plain values are known. What it
// returns names only the places, so a value never becomes part of a record.
package exposure

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Place is a place at which the value of a Secret became readable.
type Place struct {
	// Secret and Key name the value.
	Secret state.Ref
	Key    string
	// Revision, Ref and Path name the change that brought the value into an object, and the field.
	// They are empty if the value is in the output of the controller.
	Revision int64
	Ref      state.Ref
	Path     string
	// Open reports whether the field is one that readers of the object, who may not read Secrets,
	// are supposed to see.
	Open bool
	// Line is the line of the output, without the value.
	Line string
}

// Values holds the secret values of one run.
type Values struct {
	all  []value
	seen map[string]bool
}

type value struct {
	secret state.Ref
	key    string
	forms  []string
}

// mostValues limits the number of values of a run: a controller may generate one in a loop.
const mostValues = 200

// Add adds the values of an object if it is a Secret: only values whose key names a credential, and
// that are too unusual to occur elsewhere by chance. The host, the user and the certificate in a Secret
// are not secret.
func (v *Values) Add(ref state.Ref, object state.Object) {
	if !isSecret(ref) {
		return
	}
	data, _ := object["data"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		id := ref.String() + "\n" + ref.Namespace + "\n" + ref.Name + "\n" + key + "\n" + text
		if err != nil || v.seen[id] || len(v.all) == mostValues || !sensitive(key, string(plain)) {
			continue
		}
		if v.seen == nil {
			v.seen = map[string]bool{}
		}
		v.seen[id] = true
		v.all = append(v.all, value{ref, key, forms(string(plain))})
	}
}

func isSecret(ref state.Ref) bool { return ref.Kind == "Secret" && ref.Group == "" }

// Find returns the places of the values in a history and in the output of the controller, in the
// order in which they appeared, with those in the output last. It omits values that are in an
// object that existed before, in a manifest of the scenario, or in the name of an object.
func (v *Values) Find(h state.History, manifests []map[string]any, output string) []Place {
	if len(v.all) == 0 {
		return nil
	}
	kept := &Values{all: slices.Clone(v.all)}
	kept.drop(manifests)
	places := kept.inObjects(h)
	found := slices.ContainsFunc(kept.all, func(value value) bool { _, _, is := value.in(output); return is })
	if len(places) == 0 && !found {
		return nil // most runs end here, without a look at the baseline
	}
	kept.dropExisting(h)
	return append(kept.inObjects(h), kept.inOutput(output)...)
}

// drop forgets the values that a manifest, other than that of a Secret, contains.
func (v *Values) drop(manifests []map[string]any) {
	for _, object := range manifests {
		if object["kind"] == "Secret" {
			object = map[string]any{"metadata": object["metadata"]}
		}
		v.forget(object)
	}
}

// dropExisting forgets the values that existing objects, or the names of objects, contain.
func (v *Values) dropExisting(h state.History) {
	for ref, object := range h.Baseline {
		v.forget(ref.Name)
		if !isSecret(ref) {
			v.forget(map[string]any(object))
		}
	}
	for _, c := range h.Changes {
		v.forget(c.Ref.Name)
		v.forget(c.Ref.Namespace)
	}
}

func (v *Values) forget(content any) {
	eachText(content, "", func(_, text string) {
		v.all = slices.DeleteFunc(v.all, func(value value) bool { _, _, is := value.in(text); return is })
	})
}

// inObjects returns the places in objects. A change counts only if it brought the value there.
func (v *Values) inObjects(h state.History) (places []Place) {
	held := map[state.Ref]map[string]bool{} // by object: the paths, with the numbers of the values
	for _, c := range h.Changes {
		if isSecret(c.Ref) {
			continue
		}
		now := map[string]bool{}
		eachText(map[string]any(c.After), "", func(path, text string) {
			text = decoded(c.Ref, path, text)
			for i, value := range v.all {
				if _, _, is := value.in(text); !is {
					continue
				}
				id := strconv.Itoa(i) + " " + path
				if now[id] = true; !held[c.Ref][id] {
					places = append(places, Place{Secret: value.secret, Key: value.key, Revision: c.Revision, Ref: c.Ref, Path: path, Open: open(c.Ref, path)})
				}
			}
		})
		held[c.Ref] = now
	}
	return places
}

// decoded returns the bytes of an entry in the binaryData of a ConfigMap, and other texts as they
// are.
func decoded(ref state.Ref, path, text string) string {
	if ref.Kind != "ConfigMap" || ref.Group != "" || !strings.HasPrefix(path, "binaryData") {
		return text
	}
	if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
		return string(plain)
	}
	return text
}

// inOutput returns the first line of the output for each value.
func (v *Values) inOutput(output string) (places []Place) {
	output = withoutBodies(output)
	for _, value := range v.all {
		if from, to, is := value.in(output); is {
			places = append(places, Place{Secret: value.secret, Key: value.key, Line: v.hide(lineAt(output, from, to))})
		}
	}
	return places
}

// mark replaces a value in a line.
const mark = "[secret value]"

func (v *Values) hide(line string) string {
	var all []string
	for _, value := range v.all {
		all = append(all, value.forms...)
	}
	// A value may be a part of another.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, form := range all {
		line = strings.ReplaceAll(line, form, mark)
	}
	return line
}

// lineAt returns the line, or the lines, that contain a part of a text.
func lineAt(text string, from, to int) string {
	begin := strings.LastIndexByte(text[:from], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[to:], '\n'); i >= 0 {
		end = to + i
	}
	return text[begin:end]
}

// withoutBodies removes the lines with which client-go logs the body of each request. Whoever runs a
// controller with that verbosity asks for them.
func withoutBodies(output string) string {
	if !strings.Contains(output, "Body") {
		return output
	}
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if !strings.Contains(line, "Request Body") && !strings.Contains(line, "Response Body") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
