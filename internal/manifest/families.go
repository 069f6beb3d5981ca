package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/manifest/policy"
	"github.com/koboshi-dev/koboshi/internal/spelling"
)

// ours is the prefix of the markers that belong to controller-tools alone.
const ours = "kubebuilder:"

// koboshis is the prefix of Koboshi's own markers.
const koboshis = "koboshi:"

// foreign lists the markers below ours that other programs read.
var foreign = []string{"kubebuilder:scaffold", "kubebuilder:docs-gen"}

// plainName matches the name of a marker, in contrast to prose that begins with a plus sign.
var plainName = regexp.MustCompile(`^[A-Za-z][\w.-]*(:[\w.-]+)*$`)

// unknown returns the problem of a marker that no generator knows, if the marker belongs to
// controller-tools or Koboshi, or resembles one that does. Every other marker may belong to another
// program.
func (c *catalogue) unknown(text string) Problem {
	full, short := nameOf(text)
	if isForeign(full) {
		return Problem{}
	}
	lower := strings.ToLower(full)
	if strings.HasPrefix(lower, koboshis) {
		// Koboshi has only one marker.
		return Problem{Marker: "+" + full, Message: "unknown marker +" + full, Suggestion: "+" + policy.Marker}
	}
	if !strings.HasPrefix(lower, ours) {
		return c.misspelled(full)
	}
	p := Problem{Marker: "+" + full, Message: "unknown marker +" + full}
	if word, _, _ := strings.Cut(full, " "); word != full && len(c.applicable("+"+word)) > 0 {
		p.Message = fmt.Sprintf("marker +%s is followed by text, and is therefore ignored; move the text to a line of its own", word)
		p.Marker = "+" + word
		return p
	}
	if near := c.nearest(full, short); near != "" {
		p.Suggestion = "+" + near
		return p
	}
	p.Message += "; see https://book.kubebuilder.io/reference/markers for the list"
	return p
}

func isForeign(name string) bool {
	return slices.ContainsFunc(foreign, func(prefix string) bool { return name == prefix || strings.HasPrefix(name, prefix+":") })
}

// nearest returns the marker that was probably meant, with the name of the first argument if
// there is one.
func (c *catalogue) nearest(full, short string) string {
	var whole, withArguments []string
	for _, name := range sortedKeys(c.definitions) {
		definition := c.definitions[name]
		whole = append(whole, name)
		if !definition.Empty() && !definition.AnonymousField() {
			withArguments = append(withArguments, name)
		}
	}
	if near := nearestMarker(full, whole); near != "" {
		return near
	}
	if near := nearestMarker(short, withArguments); near != "" && short != full {
		return near + full[len(short):]
	}
	return ""
}

// nearestMarker does the same as the function nearest, but the last parts of both names must be
// similar. If there is no such marker, it returns a marker of controller-tools that has the same
// last part.
func nearestMarker(name string, names []string) string {
	last := lastPart(name)
	if near := nearest(name, names); near != "" && len(last) >= 2*spelling.Distance(last, lastPart(near)) {
		return near
	}
	for _, candidate := range names {
		if strings.EqualFold(last, lastPart(candidate)) && strings.HasPrefix(candidate, ours) {
			return candidate
		}
	}
	return ""
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// misspelled returns the problem of a marker without a prefix of its own, such as +optinal or
// +k8s:optinal. Only a name that differs little from a known name is reported as a mistake.
func (c *catalogue) misspelled(name string) Problem {
	if !plainName.MatchString(name) || knownElsewhere(name) {
		return Problem{}
	}
	prefix := strings.HasPrefix(name, "k8s:")
	if !prefix && strings.ContainsAny(name, ":.-") {
		return Problem{}
	}
	var names []string
	for candidate := range c.definitions {
		if !strings.HasPrefix(candidate, ours) && strings.HasPrefix(candidate, "k8s:") == prefix {
			names = append(names, candidate)
		}
	}
	near := nearest(name, names)
	if near == "" {
		return Problem{}
	}
	return Problem{Marker: "+" + name, Message: "unknown marker +" + name, Suggestion: "+" + near}
}

// knownElsewhere reports whether the name differs little from a name of controller-tools, but
// belongs to one of Kubernetes' own generators.
func knownElsewhere(name string) bool {
	return slices.Contains([]string{
		"k8s:minItems", "k8s:minLength", "k8s:maxLength", "k8s:maxBytes", "k8s:format", "k8s:item", "k8s:unique",
		"k8s:minProperties", "k8s:maxProperties", "k8s:listMapItem", "groupGoName",
	}, name)
}

// toleratedAnywhere reports whether the marker may stand where controller-tools ignores it,
// because other programs read it there.
func toleratedAnywhere(text string) bool {
	full, _ := nameOf(text)
	return full == "groupName" || full == "versionName" || full == "default" || strings.HasPrefix(full, "k8s:")
}
