// Package compat finds out whether a new version of an API is safe for its users: it compares
// the schemas of CRDs, and lets an API server read, write and convert objects that were stored
// under the old CRDs.
//
//	old, new CRDs ──▶ Compare ──▶ changes ─────────────────────┐
//	                                │                          ▼
//	samples ────────────▶ objects at the changed fields      merge ──▶ findings
//	                                │                          ▲
//	                                ▼                          │
//	API server: store under old, update the CRD, use ──▶ observations
package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// A Severity is the weight of a finding.
//
// The only rule: a change is breaking if a request of an old client, or a stored object, is treated
// differently than before. The request is refused, or the object loses content or has other content
// in a field of the old schema. The maturity of the version, such as alpha, has no influence. A
// warning is a change that may have such an effect, but for which none was observed.
type Severity string

// The severities.
const (
	Breaking Severity = "breaking"
	Warning  Severity = "warning"
)

// A Definition is a CRD with its file.
type Definition struct {
	File string
	CRD  *apiextensionsv1.CustomResourceDefinition
}

// A Sample is an object with the file that contains it.
type Sample struct {
	File   string
	Object *unstructured.Unstructured
}

// Input describes what to compare.
type Input struct {
	Old, New []Definition
	// Samples lists objects that are valid under the old CRDs.
	Samples []Sample
	// Webhooks holds the names of the CRDs whose objects a webhook converts, in addition to
	// the CRDs that declare a conversion webhook themselves.
	Webhooks map[string]bool
}

// An Effect describes what happened to an object.
type Effect struct {
	// Action is the request that had a different result, such as "create".
	Action string `json:"action"`
	// Message describes the result.
	Message string `json:"message"`
	// Origin is the file of a sample, or "generated".
	Origin string `json:"origin"`
	// Object is the object as the old client wrote it.
	Object map[string]any `json:"object"`
}

// A Finding is a change of the API that may harm users.
type Finding struct {
	File     string   `json:"file"`
	CRD      string   `json:"crd"`
	Version  string   `json:"version,omitempty"`
	Field    string   `json:"field,omitempty"`
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	// Instead describes a change that is safe.
	Instead string `json:"instead,omitempty"`
	// Effects lists what an API server did. If it is empty, only the schemas show the change.
	Effects []Effect `json:"effects"`
	// StoredUsable reports whether stored objects that violate the new rule could still be read,
	// and updated without changing the field.
	StoredUsable bool `json:"storedUsable"`

	path path
	cel  string // the CEL rule
}

// A Report is the result of Check.
type Report struct {
	Findings []Finding `json:"findings"`
	// Unchecked lists what was not checked and what to do, in whole sentences without a period.
	Unchecked []string `json:"unchecked"`
	// CRDs and Objects are the numbers of CRDs that changed, and of objects that were stored.
	CRDs    int `json:"crds"`
	Objects int `json:"objects"`
}

// Breaking returns the number of breaking findings.
func (r *Report) Breaking() (n int) {
	for _, f := range r.Findings {
		if f.Severity == Breaking {
			n++
		}
	}
	return n
}

// pair is a CRD before and after the change.
type pair struct {
	old, new Definition
	changes  []change
}

// NeedsServer reports whether a CRD has changed in a way that an API server can observe.
func (in Input) NeedsServer() bool { return len(in.pairs()) > 0 }

// pairs returns the CRDs that exist before and after the change, and differ.
func (in Input) pairs() (all []*pair) {
	for _, old := range in.Old {
		updated, ok := find(in.New, old.CRD.Name)
		if ok && !equality.Semantic.DeepEqual(old.CRD.Spec, updated.CRD.Spec) {
			all = append(all, &pair{old: old, new: updated})
		}
	}
	return all
}

func find(all []Definition, name string) (Definition, bool) {
	i := slices.IndexFunc(all, func(d Definition) bool { return d.CRD.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return all[i], true
}

// Compare returns the findings of a comparison of the CRDs alone.
func Compare(in Input) (findings []Finding) {
	findings = removed(in)
	for _, p := range in.pairs() {
		findings = append(findings, findingsOf(compare(p))...)
	}
	return sorted(findings)
}

// Check compares the CRDs, and lets the API server of a plane use objects that were stored
// under the old CRDs. It creates CRDs and a namespace in the plane, and does not remove them.
func Check(ctx context.Context, config *rest.Config, in Input) (*Report, error) {
	report := &Report{Findings: removed(in), Unchecked: []string{}}
	pairs := in.pairs()
	report.CRDs = len(pairs) + len(report.Findings)
	if len(pairs) == 0 {
		return report, nil
	}
	server, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		p.changes = compare(p)
		e := &experiment{server: server, pair: p, in: in, report: report}
		if err := e.run(ctx); err != nil {
			return nil, fmt.Errorf("%s: trying %s: %w", p.new.File, p.new.CRD.Name, err)
		}
		report.Findings = append(report.Findings, merge(p, e.observations)...)
	}
	report.Findings = sorted(report.Findings)
	return report, nil
}

// copyOf returns a deep copy of a JSON value.
func copyOf[T any](value T) (out T) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(fmt.Sprintf("copying a JSON value: %v", err)) // JSON values can always be copied
	}
	return out
}

// Text returns the object as one line of JSON, without the fields that every object has.
func (e Effect) Text() string {
	data, err := json.Marshal(contentOf(e.Object))
	if err != nil {
		return err.Error()
	}
	return string(data)
}
