package upgrade

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// differs compares the cluster after the upgrade with one in which only the new version has been
// installed.
func (r *run) differs() []judge.Finding {
	settled, scenario := r.settled(), r.Reference.Scenario
	if settled == nil || len(scenario.Steps) == 0 || len(r.Reference.Steps) == 0 {
		return nil
	}
	step := scenario.Steps[len(scenario.Steps)-1].Name
	world := r.Reference.Mask.CanonicalAfter(step, r.snapshot(r.end(settled.Name), r.Readings[Up]))
	found := slices.DeleteFunc(r.Reference.Differences(step, world), func(d state.Difference) bool { return !r.counts(d) })
	found = r.withoutKept(found)
	if declared := r.declaredDiffer(found); declared != "" {
		// An old default is stored with an object, and is right for this object.
		r.notes = append(r.notes, fmt.Sprintf("scenario %s: the cluster after the upgrade is not compared with a fresh installation, because %s has another value there: the API server stores defaults when an object is created",
			scenario.Name, declared))
		return nil
	}
	return r.byObject(judge.NotAsFresh, Up, found, "after the upgrade, %s differs from a fresh installation of the new version: %s")
}

// fixed lists the fields of a spec that the API server does not let anybody change, by kind; nil stands for
// all fields.
var fixed = map[string][]string{
	"StatefulSet.apps":      {"selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"},
	"Deployment.apps":       {"selector"},
	"DaemonSet.apps":        {"selector"},
	"Job.batch":             nil,
	"PersistentVolumeClaim": nil,
}

// isKept reports whether a controller is right to leave a field of an existing object as it is: the field
// is immutable, or its change would replace running Pods.
func isKept(d state.Difference) bool {
	kind, _, _ := strings.Cut(d.Object, " ")
	field, inSpec := strings.CutPrefix(d.Path, "spec.")
	if !inSpec {
		return false
	}
	if slices.Contains(rolling, kind) && (field == "template" || below(field, "template")) {
		return true
	}
	fields, known := fixed[kind]
	return known && (fields == nil || slices.ContainsFunc(fields, func(f string) bool { return field == f || below(field, f) }))
}

// withoutKept removes the differences in fields that a controller is right to keep, and notes their
// objects.
func (r *run) withoutKept(found []state.Difference) (others []state.Difference) {
	var objects []string
	for _, d := range found {
		switch {
		case !isKept(d):
			others = append(others, d)
		case !slices.Contains(objects, d.Object):
			objects = append(objects, d.Object)
		}
	}
	for _, object := range objects {
		r.notes = append(r.notes, fmt.Sprintf("scenario %s: %s keeps what is immutable, or what would replace its Pods, and so differs from a fresh installation", r.Run.Scenario, object))
	}
	return others
}

// byObject makes one finding for each object. The form has places for the object and the first
// difference.
func (r *run) byObject(v judge.Verdict, step string, found []state.Difference, form string) (findings []judge.Finding) {
	var objects []string
	by := map[string][]state.Difference{}
	for _, d := range found {
		if by[d.Object] == nil {
			objects = append(objects, d.Object)
		}
		by[d.Object] = append(by[d.Object], d)
	}
	for _, object := range objects {
		findings = append(findings, judge.Upgraded(v, r.Run, step, string(v), fmt.Sprintf(form, object, described(by[object][0])), by[object]))
	}
	return findings
}

// described describes a difference in a few words.
func described(d state.Difference) string {
	switch {
	case d.Path == "" && d.Got == "":
		return "it is missing"
	case d.Path == "":
		return "it is left over"
	case d.Got == "":
		return d.Path + " is missing"
	case d.Want == "":
		return d.Path + " is " + d.Got + ", which does not exist there"
	}
	return d.Path + " is " + d.Got + " instead of " + d.Want
}

// snapshot returns the objects at a revision. It omits the installation, and it has the custom resources
// as the API server serves them: the store may hold them in another version.
func (r *run) snapshot(revision int64, served Reading) state.Snapshot {
	objects := r.Run.History.At(revision)
	for ref, object := range objects {
		switch version := served.Storage[ref.String()]; {
		case r.Installed(ref):
			delete(objects, ref)
		case object != nil && version != "":
			if now := served.Versions[version][ref]; now != nil {
				objects[ref] = now
			}
		}
	}
	return objects
}

var (
	// conditionStatus matches the path of the status of a condition.
	conditionStatus = regexp.MustCompile(`^status\.conditions\[[^\]]*\](\.status)?$`)
	// summary matches the paths of fields that summarize a status in one word.
	summary = regexp.MustCompile(`^status\.(phase|state|ready)$`)
)

// counts reports whether a difference shows that the upgrade does not lead to the same result. Most of a
// status may depend on the past, and a label or an annotation that nobody needs any longer does no harm.
func (r *run) counts(d state.Difference) bool {
	kind, _, _ := strings.Cut(d.Object, " ")
	switch {
	case strings.HasSuffix(kind, ".admissionregistration.k8s.io"), strings.HasSuffix(kind, ".rbac.authorization.k8s.io") && d.Path != "" && d.Want == "":
		return false
	case (kind == "Pod" || kind == "ReplicaSet.apps") && !r.isMade(d.Object):
		return false // a consequence of a difference in a workload
	case underStatus(d.Path):
		return r.isCustomKind(kind) && d.Want != "" && (conditionStatus.MatchString(d.Path) || summary.MatchString(d.Path))
	case d.Want == "" && (strings.HasPrefix(d.Path, "metadata.labels") || strings.HasPrefix(d.Path, "metadata.annotations")):
		return false
	}
	return true
}

// isMade reports whether one of the versions created an object with the canonical name.
func (r *run) isMade(object string) bool {
	for ref := range r.made {
		if r.labels.Of(ref) == object {
			return true
		}
	}
	return false
}

func (r *run) isCustomKind(kind string) bool {
	for _, reading := range r.Readings {
		if reading.Storage[kind] != "" {
			return true
		}
	}
	return false
}

// declaredDiffer returns the first object of a user whose spec differs, or "".
func (r *run) declaredDiffer(found []state.Difference) string {
	for _, d := range found {
		if ref, known := r.refOf(d.Object); known && r.isDeclared(ref) && r.isCustom(ref) && strings.HasPrefix(d.Path, "spec") {
			return d.Path + " of " + d.Object
		}
	}
	return ""
}

// notRestored compares the cluster after the way back with the cluster before the upgrade. What the new
// version has left behind does not count.
func (r *run) notRestored() []judge.Finding {
	before, down := r.before(), r.find(Down)
	if before == nil || down == nil {
		return nil
	}
	mask := r.Reference.Mask
	was := mask.Canonical(r.snapshot(before.Rested, r.Readings[""]))
	is := mask.Canonical(r.snapshot(r.end(Down), r.Readings[Down]))
	found := slices.DeleteFunc(was.Diff(is), func(d state.Difference) bool {
		ref, known := r.refOf(d.Object)
		return d.Want == "" || !r.counts(d) || known && r.isDeclared(ref) && !underStatus(d.Path)
	})
	return r.byObject(judge.DowngradeBroken, Down, found, "after the upgrade and the way back, %s is not as the old version had left it: %s")
}
