package compat

import (
	"slices"
	"strings"
)

// notObserved lists the ends of messages about changes that only the experiment with objects can
// show to be breaking.
var notObserved = []string{"; no tried value was refused", "; no tried object was refused"}

// contentRules lists the rules that are about the content of a field, and not about whether it
// is valid.
var contentRules = []string{
	"field-removed", "default-added", "default-changed", "default-removed", "unknown-fields-pruned", "nullable-removed", "type-changed",
}

// onlyContent lists the content rules that never cause a request to be refused.
var onlyContent = []string{"default-added", "default-changed", "default-removed"}

// maxEffects limits how many objects prove a finding; there is one for each action.
const maxEffects = 4

// merge joins the changes of a CRD with what the API server did. An observation that no change
// explains becomes a finding of its own, because the comparison alone did not detect it.
func merge(p *pair, observations []observation) []Finding {
	findings := findingsOf(p.changes)
	for _, o := range observations {
		best := -1
		for i := range findings {
			if explains(findings[i], o) && (best < 0 || better(findings[i], findings[best], o)) {
				best = i
			}
		}
		if best < 0 {
			findings = append(findings, Finding{
				File: p.new.File, CRD: p.old.CRD.Name, Version: o.version, Field: o.path.String(), path: o.path, Rule: ruleOf(o),
				Severity: Breaking, Message: ownMessage(o), Instead: "keep this working in the version, and make the change in a new version with a conversion",
			})
			best = len(findings) - 1
		}
		addEffect(&findings[best], o)
	}
	for i := range findings {
		f := &findings[i]
		f.StoredUsable = len(f.Effects) > 0 && !slices.ContainsFunc(f.Effects, func(e Effect) bool {
			return e.Action != "create" && e.Action != "change of a field"
		})
		if f.Effects == nil {
			f.Effects = []Effect{}
		}
	}
	return findings
}

// ruleOf names the rule of an observation that no change explains.
func ruleOf(o observation) string {
	switch {
	case o.version == "":
		return "crd-refused"
	case o.kind == lost || o.kind == differs:
		return "content-" + string(o.kind)
	}
	return "request-refused"
}

func ownMessage(o observation) string {
	switch {
	case o.version == "":
		return "the API server does not accept the new CRD"
	case o.kind == lost:
		return "old clients lose content, although their schema keeps the field"
	case o.kind == differs:
		return "old clients read different content than before"
	}
	return "a request that worked before is refused"
}

// explains reports whether a finding is the reason for an observation.
func explains(f Finding, o observation) bool {
	if f.Version != "" && f.Version != o.version && o.version != "" {
		return false
	}
	if f.Rule == ruleOf(o) && f.Field == o.path.String() {
		return true
	}
	switch {
	case o.version == "": // about the CRD as a whole
		return slices.Contains([]string{"scope-changed", "kind-changed", "version-removed"}, f.Rule)
	case o.kind == notServed:
		return strings.HasPrefix(f.Rule, "version-") || f.Rule == "scope-changed"
	case strings.HasPrefix(f.Rule, "version-"), len(f.path) == 0 && f.Rule != "cel-rule-added" && f.Rule != "combination-changed":
		return false
	case o.kind == refused:
		return !slices.Contains(onlyContent, f.Rule) && f.path.related(o.path)
	}
	return slices.Contains(contentRules, f.Rule) && f.path.related(o.path)
}

// better reports whether the field of f is nearer to the observation than the field of another
// finding.
func better(f, than Finding, o observation) bool {
	if near, other := f.path.common(o.path), than.path.common(o.path); near != other {
		return near > other
	}
	return mentions(f, o) && !mentions(than, o)
}

// mentions reports whether the API server names the CEL rule of a finding.
func mentions(f Finding, o observation) bool {
	return f.cel != "" && strings.Contains(o.message, f.cel)
}

// addEffect adds the first object for each action.
func addEffect(f *Finding, o observation) {
	f.Severity = Breaking
	for _, suffix := range notObserved {
		f.Message = strings.TrimSuffix(f.Message, suffix)
	}
	known := slices.ContainsFunc(f.Effects, func(e Effect) bool { return e.Action == o.Action })
	if !known && len(f.Effects) < maxEffects {
		f.Effects = append(f.Effects, o.Effect)
	}
}
