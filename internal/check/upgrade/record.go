// Package upgrade judges one upgrade of a controller: what the new version does to the objects that the
// old version has made, and to the objects that users have stored. The package is a chain of pure
// functions over the record of one run.
//
//	old at rest ──(upgrade)──▶ new at rest ──(downgrade)──▶ old at rest
//	     │                          │                            │
//	     └──── Reading ─────────────┴──── history, requests ─────┘──Judge──▶ findings
//
// Another run installs the new version in an empty cluster. What is wrong there as well is not the
// fault of the upgrade; see Input.Fresh.
package upgrade

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// These are the names of the steps in which the version is replaced.
const (
	Up   = "(upgrade)"
	Down = "(downgrade)"
)

// The instances of the two versions have names that begin with one of these texts.
const (
	Old = "old"
	New = "new"
)

// Record is the record of one upgrade.
type Record struct {
	// Run has a step for each step of the scenario, and for each replacement of the version.
	Run *evidence.Run
	// Gone describes a version that kept exiting in the last step of the run.
	Gone string
	// Installed reports whether an object belongs to the installation of one of the versions.
	Installed func(state.Ref) bool
	// Declared lists the objects of the scenario, as users write them.
	Declared []map[string]any
	// Refusals lists the objects of an installation that the API server did not accept.
	Refusals []Refusal
	// Readings holds the custom resources as the API server serves them, keyed by the step after
	// which they were read. The reading before the upgrade has the key "".
	Readings map[string]Reading
}

// Refusal is an object of an installation that the API server did not accept in place of the object
// of the other version.
type Refusal struct {
	Step   string
	Object string // "Kind.group name"
	CRD    bool
	Why    string
	// Stored reports whether the CRD lacks a version in which objects are stored.
	Stored bool
}

// Reading holds custom resources in all served versions of their CRDs.
type Reading struct {
	// Versions holds the objects, keyed by "group/version".
	Versions map[string]map[state.Ref]state.Object
	// Served holds the versions that could be read, as "group/version Kind"; nil means all of Versions.
	Served map[string]bool
	// Failed holds the errors of versions that could not be read, keyed by "group/version Kind".
	Failed map[string]string
	// Storage maps a kind, as "Kind.group", to the "group/version" in which its CRD stores objects.
	Storage map[string]string
}

// Input is a record with everything that is needed to judge it.
type Input struct {
	Record
	// Reference holds the results of the scenario with the new version, installed in an empty
	// cluster. It has no steps if the new version cannot run the scenario there.
	Reference *judge.Reference
	// Fresh reports whether the record is that of a fresh installation of the new version.
	Fresh bool
	// Expected lists what the project accepts, each as "Kind.group path" or "Kind.group
	// namespace/name path".
	Expected []string
}

// Result is what the upgrade shows.
type Result struct {
	Findings []judge.Finding `json:"findings,omitempty"`
	// Accepted lists the findings that the project expects.
	Accepted []judge.Finding `json:"accepted,omitempty"`
	// Matched lists the lines of Input.Expected that matched.
	Matched []string `json:"matched,omitempty"`
	// Notes lists what was not judged, with the reasons.
	Notes []string `json:"notes,omitempty"`
}

// run is an input with what several oracles use.
type run struct {
	*Input
	authors map[int64]*trace.Entry
	labels  *state.Labels
	made    map[state.Ref]bool // objects that one of the versions created
	notes   []string
}

// Judge returns what the upgrade shows.
func Judge(in Input) Result {
	r := newRun(&in)
	findings := r.refused()
	findings = append(findings, r.gone()...)
	if len(findings) == 0 {
		findings = r.wedged()
	}
	findings = append(findings, r.lost()...)
	findings = append(findings, r.churn()...)
	if !slices.ContainsFunc(findings, func(f judge.Finding) bool { return f.Step == Up && isBroken(f.Verdict) }) {
		findings = append(findings, r.differs()...)
		findings = append(findings, r.notRestored()...)
	}
	return r.sort(findings)
}

// isBroken reports whether the new version cannot do its work. Then the differences in the cluster are
// only consequences.
func isBroken(v judge.Verdict) bool {
	return v == judge.Wedged || v == judge.Crashed || v == judge.StoredVersionsStuck
}

func newRun(in *Input) *run {
	r := &run{Input: in, authors: judge.Authors(in.Run), labels: in.Reference.Mask.Label(in.Run.History), made: map[state.Ref]bool{}}
	for _, c := range in.Run.History.Changes {
		if c.Op == state.Created && r.authors[c.Revision] != nil && !in.Installed(c.Ref) {
			r.made[c.Ref] = true
		}
	}
	return r
}

// find returns a step of the run, or nil if the run did not reach its end.
func (r *run) find(name string) *evidence.Step {
	for i := range r.Run.Steps {
		if s := &r.Run.Steps[i]; s.Name == name && s.RestedAt > 0 && !s.Restless {
			return s
		}
	}
	return nil
}

// before returns the last step before the upgrade, or nil if the run did not reach its end.
func (r *run) before() *evidence.Step {
	at := slices.IndexFunc(r.Run.Steps, func(s evidence.Step) bool { return s.Name == Up })
	if at < 1 {
		return nil
	}
	return r.find(r.Run.Steps[at-1].Name)
}

// settled returns the step after which the new version has done its work, or nil.
func (r *run) settled() *evidence.Step {
	if r.Fresh && len(r.Run.Steps) > 0 {
		return r.find(r.Run.Steps[len(r.Run.Steps)-1].Name)
	}
	return r.find(Up)
}

// isDeclared reports whether users wrote an object.
func (r *run) isDeclared(ref state.Ref) bool { return r.declared(ref) != nil }

// declared returns the last manifest of an object, or nil.
func (r *run) declared(ref state.Ref) (found map[string]any) {
	for _, object := range r.Declared {
		o := state.Object(object)
		kind, _ := object["kind"].(string)
		version, _ := object["apiVersion"].(string)
		group, _, grouped := strings.Cut(version, "/")
		if !grouped {
			group = ""
		}
		space := o.Metadata("namespace")
		if kind == ref.Kind && group == ref.Group && o.Metadata("name") == ref.Name && (space == ref.Namespace || space == "" && ref.Namespace == "default") {
			found = object
		}
	}
	return found
}
