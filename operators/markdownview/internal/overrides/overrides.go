// Package overrides limits the fields of a MarkdownView that change how its children are
// exposed and scheduled. The platform team sets the limits, because a user who may create a
// MarkdownView, but no Ingresses, Services or Pods, could otherwise configure them through
// these fields.
package overrides

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// Default allows the annotations of cert-manager and external-dns, and every Service
// type.
const Default = "service.type,ingress.annotations=cert-manager.io/*,httpRoute.annotations=cert-manager.io/*," +
	"ingress.annotations=external-dns.alpha.kubernetes.io/*,httpRoute.annotations=external-dns.alpha.kubernetes.io/*," +
	"service.annotations=external-dns.alpha.kubernetes.io/*"

// all is the entry that allows every field.
const all = "*"

// Policy lists the allowed fields. The zero value allows no fields; nil allows all.
type Policy struct {
	all bool
	// patterns holds the allowed keys or values of each field.
	patterns map[string][]string
}

// field is a field of the spec that a policy allows or denies.
type field struct {
	name string
	// keys returns the keys that the spec sets in the field, or the value of the field.
	keys func(*viewv1.MarkdownViewSpec) []string
	// drop removes settings that are not allowed; it is called only if the spec sets the field.
	drop func(s *viewv1.MarkdownViewSpec, allowed func(string) bool)
}

// fields lists every field that a policy allows or denies.
var fields = []field{
	mapField("service.annotations", func(s *viewv1.MarkdownViewSpec) map[string]string {
		if s.Service == nil {
			return nil
		}
		return s.Service.Annotations
	}),
	{"service.type", func(s *viewv1.MarkdownViewSpec) []string {
		if s.Service == nil || s.Service.Type == "" || s.Service.Type == "ClusterIP" {
			return nil
		}
		return []string{string(s.Service.Type)}
	}, func(s *viewv1.MarkdownViewSpec, allowed func(string) bool) {
		if !allowed(string(s.Service.Type)) {
			s.Service.Type = ""
		}
	}},
	mapField("ingress.annotations", func(s *viewv1.MarkdownViewSpec) map[string]string {
		if s.Ingress == nil {
			return nil
		}
		return s.Ingress.Annotations
	}),
	mapField("httpRoute.annotations", func(s *viewv1.MarkdownViewSpec) map[string]string {
		if s.HTTPRoute == nil {
			return nil
		}
		return s.HTTPRoute.Annotations
	}),
	mapField("pod.labels", func(s *viewv1.MarkdownViewSpec) map[string]string {
		if s.Pod == nil {
			return nil
		}
		return s.Pod.Labels
	}),
	mapField("pod.annotations", func(s *viewv1.MarkdownViewSpec) map[string]string {
		if s.Pod == nil {
			return nil
		}
		return s.Pod.Annotations
	}),
	{"pod.priorityClassName", func(s *viewv1.MarkdownViewSpec) []string {
		if s.Pod == nil || s.Pod.PriorityClassName == "" {
			return nil
		}
		return []string{s.Pod.PriorityClassName}
	}, func(s *viewv1.MarkdownViewSpec, allowed func(string) bool) {
		if !allowed(s.Pod.PriorityClassName) {
			s.Pod.PriorityClassName = ""
		}
	}},
	{"pod.tolerations", func(s *viewv1.MarkdownViewSpec) []string {
		if s.Pod == nil {
			return nil
		}
		var keys []string
		for i := range s.Pod.Tolerations {
			keys = append(keys, s.Pod.Tolerations[i].Key)
		}
		return keys
	}, func(s *viewv1.MarkdownViewSpec, allowed func(string) bool) {
		kept := s.Pod.Tolerations[:0]
		for i := range s.Pod.Tolerations {
			if allowed(s.Pod.Tolerations[i].Key) {
				kept = append(kept, s.Pod.Tolerations[i])
			}
		}
		s.Pod.Tolerations = kept
	}},
}

func mapField(name string, of func(*viewv1.MarkdownViewSpec) map[string]string) field {
	return field{name,
		func(s *viewv1.MarkdownViewSpec) []string { return slices.Sorted(maps.Keys(of(s))) },
		func(s *viewv1.MarkdownViewSpec, allowed func(string) bool) {
			maps.DeleteFunc(of(s), func(key, _ string) bool { return !allowed(key) })
		},
	}
}

// Parse reads entries such as pod.labels or ingress.annotations=cert-manager.io/*. An entry
// without a pattern allows every key or value of the field. In a pattern, * matches any
// characters except a slash. The entry * allows all fields.
func Parse(entries ...string) (*Policy, error) {
	p := &Policy{patterns: map[string][]string{}}
	for _, entry := range entries {
		if entry == all {
			p.all = true
			continue
		}
		name, pattern, limited := strings.Cut(entry, "=")
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			return nil, fmt.Errorf("%q is not a field that can be allowed: use %s or *", name, strings.Join(Fields(), ", "))
		}
		if _, err := path.Match(pattern, ""); err != nil || limited && pattern == "" {
			return nil, fmt.Errorf("%q is not a pattern: write %s=NAME, where * matches any characters except a slash", entry, name)
		}
		p.patterns[name] = append(p.patterns[name], pattern)
	}
	return p, nil
}

// Fields returns the names of all fields that a policy allows or denies.
func Fields() []string {
	names := make([]string, 0, len(fields))
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

func (p *Policy) allows(name, key string) bool {
	if p == nil || p.all {
		return true
	}
	return slices.ContainsFunc(p.patterns[name], func(pattern string) bool {
		matches, err := path.Match(pattern, key)
		return pattern == "" || err == nil && matches
	})
}

// Denial is a setting that the policy does not allow.
type Denial struct {
	// Field is the path of the field below spec, such as pod.labels.
	Field string
	// Key is the key of the denied entry if the field is a map, otherwise the value of the
	// field.
	Key string
}

func (d Denial) String() string { return fmt.Sprintf("spec.%s[%s]", d.Field, d.Key) }

// Denied returns the settings that the policy does not allow, in a fixed order.
func (p *Policy) Denied(spec *viewv1.MarkdownViewSpec) []Denial {
	var denied []Denial
	for _, f := range fields {
		for _, key := range f.keys(spec) {
			if !p.allows(f.name, key) {
				denied = append(denied, Denial{f.name, key})
			}
		}
	}
	return denied
}

// Strip removes the settings that the policy does not allow.
func (p *Policy) Strip(spec *viewv1.MarkdownViewSpec) {
	for _, f := range fields {
		if len(f.keys(spec)) > 0 {
			f.drop(spec, func(key string) bool { return p.allows(f.name, key) })
		}
	}
}
