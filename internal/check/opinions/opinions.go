// Package opinions defines the settings of a project's checks: the section check of koboshi.yaml.
// Some differences that a check finds are bugs in one project and intended in another, and only the
// project itself can decide which.
//
//	koboshi.yaml ──▶ Opinions ─┬─Apply──▶ scenarios with its ignore list, rest and givens
//	                           ├─Kinds, Meddles──▶ the faults that are run
//	                           └─Profile
//	finding ──Silence──▶ the lines to add to koboshi.yaml
package opinions

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Opinions are the settings of a project's checks. The zero value changes nothing.
type Opinions struct {
	// Ignore lists fields and objects that no scenario compares, in the form of
	// Scenario.Ignore.
	Ignore []string `json:"ignore,omitempty"`
	// Rest defines when the cluster is considered idle. A scenario may define it differently.
	Rest scenario.Rest `json:"rest,omitzero"`
	// Faults selects the kinds of faults.
	Faults Faults `json:"faults,omitzero"`
	// Interference limits what other clients do to the controller's objects.
	Interference Interference `json:"interference,omitzero"`
	// Inputs defines what is accepted when fields of custom resources are changed.
	Inputs Inputs `json:"inputs,omitzero"`
	// Conversions defines what may be lost between the versions of custom resources.
	Conversions Conversions `json:"conversions,omitzero"`
	// Profile names the Kubernetes controllers of the plane.
	Profile string `json:"profile,omitempty"`
	// Pods defines the answers of simulated Pods; the answers that a scenario defines come first.
	Pods []scenario.PodAnswers `json:"pods,omitempty"`
	// Run lists programs that run in Pods instead of containers, each as IMAGE=PATH. Relative paths
	// are resolved like those of Givens.
	Run []string `json:"run,omitempty"`
	// Upgrade defines what is accepted in an upgrade.
	Upgrade Upgrade `json:"upgrade,omitzero"`
	// Requests defines which requests to the API server are accepted.
	Requests Requests `json:"requests,omitzero"`
	// Givens lists files with objects that exist before each scenario. Paths are relative to
	// the file with the settings; after Resolve, to the working directory.
	Givens []string `json:"givens,omitempty"`
}

// Faults selects kinds of faults.
type Faults struct {
	// Only lists the kinds that are injected; empty means all kinds.
	Only []string `json:"only,omitempty"`
	// Skip lists kinds that are not injected.
	Skip []string `json:"skip,omitempty"`
}

// Interference limits what other clients do to the controller's objects.
type Interference struct {
	// Skip lists the kinds, each as "Kind.group", whose objects no other client deletes or
	// changes. A * stands for any characters.
	Skip []string `json:"skip,omitempty"`
}

// Inputs defines what is accepted when fields of custom resources are changed.
type Inputs struct {
	// Inert lists fields that need no effect, each as "Kind.group PATH". The fields in them need none
	// either.
	Inert []string `json:"inert,omitempty"`
}

// Allows reports whether a field needs no effect.
func (i *Inputs) Allows(kind, field string) bool { return covers(i.Inert, kind, field) }

// Conversions defines what may be lost between the versions of custom resources.
type Conversions struct {
	// Lossy lists fields that may be lost or changed, each as "Kind.group PATH", in which an item of a
	// list is []. So may the fields in them.
	Lossy []string `json:"lossy,omitempty"`
}

// Allows reports whether a value may be lost.
func (c *Conversions) Allows(kind, path string) bool { return covers(c.Lossy, kind, everyItem(path)) }

// index matches the index of an item in a path.
var index = regexp.MustCompile(`\[\d+\]`)

// everyItem returns a path that is the same for all items of a list.
func everyItem(path string) string { return index.ReplaceAllLiteralString(path, "[]") }

// covers reports whether a field is one of the lines, each "Kind.group PATH", or is in one of them.
func covers(lines []string, kind, field string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		rest, found := strings.CutPrefix(kind+" "+field, line)
		return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Upgrade defines what is accepted in an upgrade.
type Upgrade struct {
	// Expected lists the changes that the new version makes on purpose, in the form of
	// Scenario.Ignore.
	Expected []string `json:"expected,omitempty"`
	// OneWay turns off the way back to the old version.
	OneWay bool `json:"oneWay,omitempty"`
}

// Requests defines which requests to the API server are accepted.
type Requests struct {
	// Budget maps the name of a scenario to the numbers of requests that it needs without a fault,
	// each by verb and resource, such as "get pods". koboshi check --update-budget writes it.
	Budget map[string]map[string]int32 `json:"budget,omitempty"`
	// Lists names the resources, each with its group, that the controller may list as a whole.
	Lists []string `json:"lists,omitempty"`
}

// complaints returns the mistakes in the section.
func (r *Requests) complaints(complain func(field, format string, args ...any)) {
	for _, scenario := range slices.Sorted(maps.Keys(r.Budget)) {
		for _, name := range slices.Sorted(maps.Keys(r.Budget[scenario])) {
			at := strictyaml.Below(strictyaml.Below("requests.budget", scenario), name)
			verb, resource, _ := strings.Cut(name, " ")
			switch {
			case verb == "" || resource == "" || strings.ContainsAny(resource, " \t"):
				complain(at, "must be a verb and a resource with its group, such as get deployments.apps; run koboshi check --update-budget to write the budget")
			case r.Budget[scenario][name] < 0:
				complain(at, "%d is not a number of requests; use 0 or more", r.Budget[scenario][name])
			}
		}
	}
	for i, resource := range r.Lists {
		if resource == "" || strings.ContainsAny(resource, " \t/") {
			complain(fmt.Sprintf("requests.lists[%d]", i), "%q must be a resource with its group, such as pods or deployments.apps", resource)
		}
	}
}

// Profiles lists the names that Opinions.Profile may have.
var Profiles = []string{"api", "gc", "workloads", "full"}

// Complaints returns the mistakes that the types cannot exclude. at is the path of the
// section.
func (o *Opinions) Complaints(at string) (all []strictyaml.Complaint) {
	complain := func(field, format string, args ...any) {
		all = append(all, strictyaml.Complaint{Path: at + "." + field, Message: fmt.Sprintf(format, args...)})
	}
	for i, text := range o.Ignore {
		if _, _, _, ok := state.SplitIgnore(text); !ok {
			complain(fmt.Sprintf("ignore[%d]", i), "%q %s", text, scenario.IgnoreForm)
		}
	}
	for i, text := range o.Upgrade.Expected {
		if _, _, _, ok := state.SplitIgnore(text); !ok {
			complain(fmt.Sprintf("upgrade.expected[%d]", i), "%q %s", text, scenario.IgnoreForm)
		}
	}
	kinds := names(fault.Kinds())
	for field, list := range map[string][]string{"faults.only": o.Faults.Only, "faults.skip": o.Faults.Skip} {
		for i, kind := range list {
			if !slices.Contains(kinds, kind) {
				complain(fmt.Sprintf("%s[%d]", field, i), "%s: %s", kind, strictyaml.Unknown("kind of fault", kind, kinds))
			}
		}
	}
	for i, kind := range o.Interference.Skip {
		if _, err := path.Match(kind, ""); err != nil || kind == "" || strings.ContainsAny(kind, " \t/") {
			complain(fmt.Sprintf("interference.skip[%d]", i), "%q must be a kind with its group, such as Job.batch", kind)
		}
	}
	for at, lines := range map[string][]string{"inputs.inert": o.Inputs.Inert, "conversions.lossy": o.Conversions.Lossy} {
		for i, line := range lines {
			if kind, field, ok := strings.Cut(line, " "); !ok || kind == "" || field == "" || strings.ContainsAny(field, " \t") {
				complain(fmt.Sprintf("%s[%d]", at, i), "%q must be a kind with its group, and a field, such as Boat.sea.example.com spec.flag", line)
			}
		}
	}
	o.Requests.complaints(complain)
	if o.Profile != "" && !slices.Contains(Profiles, o.Profile) {
		complain("profile", "%s: %s", o.Profile, strictyaml.Unknown("profile", o.Profile, Profiles))
	}
	for i := range o.Pods {
		at := fmt.Sprintf("pods[%d]", i)
		for _, wrong := range o.Pods[i].Complaints(at, nil) {
			complain(wrong.Path, "%s", wrong.Message)
		}
	}
	for i, entry := range o.Run {
		if image, path, ok := strings.Cut(entry, "="); !ok || image == "" || path == "" {
			complain(fmt.Sprintf("run[%d]", i), "%q is not of the form IMAGE=PATH; an example is web=bin/web", entry)
		}
	}
	for i, file := range o.Givens {
		if file == "" {
			complain(fmt.Sprintf("givens[%d]", i), "is empty; name a file with objects")
		}
	}
	return all
}

func names(kinds []fault.Kind) (all []string) {
	for _, kind := range kinds {
		all = append(all, string(kind))
	}
	return all
}

// Resolve turns paths relative to a folder into paths relative to the working directory.
func (o *Opinions) Resolve(folder string) {
	for i, entry := range o.Run {
		if image, path, _ := strings.Cut(entry, "="); !filepath.IsAbs(path) {
			o.Run[i] = image + "=" + filepath.Join(folder, path)
		}
	}
	for i, file := range o.Givens {
		if !filepath.IsAbs(file) {
			o.Givens[i] = filepath.Join(folder, file)
		}
	}
}

// Apply returns the scenarios with the settings of the project. The settings of a scenario itself
// take precedence.
func (o *Opinions) Apply(all []*scenario.Scenario) ([]*scenario.Scenario, error) {
	var givens []scenario.Manifest
	for _, file := range o.Givens {
		objects, err := scenario.ReadManifests(file)
		if err != nil {
			return nil, fmt.Errorf("check.givens: %w; correct the path in the settings, or create the file", err)
		}
		givens = append(givens, objects...)
	}
	applied := make([]*scenario.Scenario, 0, len(all))
	for _, s := range all {
		applied = append(applied, o.apply(s, givens))
	}
	return applied, nil
}

func (o *Opinions) apply(s *scenario.Scenario, givens []scenario.Manifest) *scenario.Scenario {
	out := *s
	out.Ignore = slices.Clone(s.Ignore)
	for _, text := range o.Ignore {
		if !slices.Contains(out.Ignore, text) {
			out.Ignore = append(out.Ignore, text)
		}
	}
	if out.Rest.Quiet == 0 {
		out.Rest.Quiet = o.Rest.Quiet
	}
	if out.Rest.Round == 0 {
		out.Rest.Round = o.Rest.Round
	}
	if out.Rest.Timeout == 0 {
		out.Rest.Timeout = o.Rest.Timeout
	}
	out.Pods = slices.Concat(s.Pods, o.Pods)
	out.Given = nil
	for _, m := range givens {
		if !slices.ContainsFunc(s.Given, m.SameObject) {
			out.Given = append(out.Given, m)
		}
	}
	out.Given = append(out.Given, s.Given...)
	return &out
}

// Kinds returns the kinds of faults to inject; nil means all kinds.
func (o *Opinions) Kinds() (kinds []fault.Kind) {
	if len(o.Faults.Only)+len(o.Faults.Skip) == 0 {
		return nil
	}
	for _, kind := range fault.Kinds() {
		only := len(o.Faults.Only) == 0 || slices.Contains(o.Faults.Only, string(kind))
		if only && !slices.Contains(o.Faults.Skip, string(kind)) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Meddles reports whether a fault lets another client delete or change an object of a kind
// that the project excludes from such faults.
func (o *Opinions) Meddles(f fault.Fault) bool {
	if f.Kind != fault.DeleteChild && f.Kind != fault.EditChild {
		return false
	}
	kind, _, _ := strings.Cut(f.Target, "/")
	return slices.ContainsFunc(o.Interference.Skip, func(pattern string) bool {
		ok, err := path.Match(pattern, kind)
		return err == nil && ok
	})
}

// Summary lists the settings, for the report.
func (o *Opinions) Summary() (all []string) {
	add := func(set bool, format string, args ...any) {
		if set {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(len(o.Ignore) > 0, "ignore (%d)", len(o.Ignore))
	add(o.Rest.Quiet > 0, "rest.quiet %s", o.Rest.Quiet)
	add(o.Rest.Round > 0, "rest.round %s", o.Rest.Round)
	add(o.Rest.Timeout > 0, "rest.timeout %s", o.Rest.Timeout)
	add(len(o.Faults.Only) > 0, "faults.only %s", strings.Join(o.Faults.Only, ", "))
	add(len(o.Faults.Skip) > 0, "faults.skip %s", strings.Join(o.Faults.Skip, ", "))
	add(len(o.Interference.Skip) > 0, "interference.skip %s", strings.Join(o.Interference.Skip, ", "))
	add(len(o.Inputs.Inert) > 0, "inputs.inert (%d)", len(o.Inputs.Inert))
	add(len(o.Conversions.Lossy) > 0, "conversions.lossy (%d)", len(o.Conversions.Lossy))
	add(o.Profile != "", "profile %s", o.Profile)
	add(len(o.Pods) > 0, "pods (%d)", len(o.Pods))
	add(len(o.Run) > 0, "run (%d)", len(o.Run))
	add(len(o.Upgrade.Expected) > 0, "upgrade.expected (%d)", len(o.Upgrade.Expected))
	add(o.Upgrade.OneWay, "upgrade.oneWay")
	add(len(o.Requests.Budget) > 0, "requests.budget (%s)", noun.Count(len(o.Requests.Budget), "scenario"))
	add(len(o.Requests.Lists) > 0, "requests.lists (%d)", len(o.Requests.Lists))
	add(len(o.Givens) > 0, "givens (%d)", len(o.Givens))
	return all
}
