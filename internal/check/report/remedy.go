package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// remedy returns one line that says what to change in the controller, or "" for a verdict of a later
// version.
func remedy(f judge.Finding) string {
	if advise := about(f.Verdict).remedy; advise != nil {
		return inline(advise(f))
	}
	return ""
}

// fixedWhen returns the condition under which a finding counts as fixed, as the rest of a sentence
// that begins with "fixed when".
func fixedWhen(f judge.Finding) string {
	if condition := about(f.Verdict).fixed; condition != "" {
		return condition
	}
	switch {
	case f.Replay == "":
		return "a check no longer finds it"
	case f.Fault == nil: // a replay repeats all runs without a fault, and watches for as long
		return "a replay passes"
	}
	// A race does not occur in every run, so it takes more runs to rely on its absence.
	n := max(f.Attempts, fewestReplays)
	return fmt.Sprintf("%d of %d replays pass", n, n)
}

// fewestReplays is the number of clean runs after which a check moves a saved finding to the folder
// of fixed findings.
const fewestReplays = 3

// mainPlace describes the object of a finding, or its field: "spec.replicas of Deployment.apps
// default/web".
func mainPlace(f judge.Finding) string {
	object, path := f.Place()
	if path == "" {
		return object
	}
	return path + " of " + object
}

// briefPlace is like mainPlace, but names only the kind of the object: "spec.replicas of the
// Deployment".
func briefPlace(f judge.Finding) string {
	object, path := f.Place()
	kind, _, _ := strings.Cut(object, " ")
	kind, _, _ = strings.Cut(kind, ".")
	if path == "" {
		return "the " + kind
	}
	return path + " of the " + kind
}

// inPlace makes a remedy for findings that name a place. Other findings get the second text.
func inPlace(form, otherwise string) func(judge.Finding) string {
	return func(f judge.Finding) string {
		if place := mainPlace(f); place != "" {
			return fmt.Sprintf(form, place)
		}
		return otherwise
	}
}

// converge is the remedy for a state that stays wrong.
func converge(f judge.Finding) string {
	place := mainPlace(f)
	if place == "" {
		return "Decide each step by the state of the cluster, not by what was done before."
	}
	object, path := f.Place()
	wanted, got := values(f, object, path)
	switch {
	case path == "" && got == "":
		return fmt.Sprintf("Create %s in every reconcile that finds it missing.", place)
	case path == "":
		return fmt.Sprintf("Delete %s in every reconcile that still finds it.", place)
	case path == "metadata.ownerReferences":
		return fmt.Sprintf("Set only owners of %s that exist and may own it.", object)
	case got == "" && (path == "metadata.finalizers" || path == "metadata.annotations" || path == "metadata.managedFields"):
		return fmt.Sprintf("Write only your own fields, so that %s keeps what others added.", place)
	case wanted == "":
		return fmt.Sprintf("Remove %s in every reconcile in which it should not exist.", place)
	case strings.HasPrefix(path, "status"):
		return fmt.Sprintf("In every reconcile, compute %s from the cluster.", place)
	}
	return fmt.Sprintf("In every reconcile, set %s to the wanted value.", place)
}

// hasPath reports whether a difference of a finding has a path that stands for something other than a
// field.
func hasPath(f judge.Finding, path string) bool {
	return slices.ContainsFunc(f.Differences, func(d state.Difference) bool { return d.Path == path })
}

// values returns the values of the finding's main place.
func values(f judge.Finding, object, path string) (want, got string) {
	for _, d := range f.Differences {
		if d.Object == object && d.Path == path {
			return d.Want, d.Got
		}
	}
	return "", ""
}

// spare is the remedy for an object that is destroyed, or a value that is generated again.
func spare(f judge.Finding) string {
	object, path := f.Place()
	switch {
	case hasPath(f, "(rollouts)"):
		return fmt.Sprintf("Make all changes of the template of %s in one write.", object)
	case strings.HasPrefix(path, "spec."):
		return fmt.Sprintf("Write %s once, with its final value.", mainPlace(f))
	case path != "":
		return fmt.Sprintf("Generate %s only if a read shows that it does not exist.", mainPlace(f))
	}
	return inPlace("Delete %s only if a current read shows that it must go.",
		"Delete only what a current read shows to be superfluous.")(f)
}

// survive is the remedy for a panic or an exit.
func survive(f judge.Finding) string {
	if f.Frame == "" {
		return "Return the error and try again, instead of ending the process."
	}
	return fmt.Sprintf("Check for missing and unexpected values in %s.", f.Frame)
}

// resign is the remedy for a process that writes without its Lease.
func resign(f judge.Finding) string {
	what := "writing"
	if f.Request != "" {
		what = "sending " + f.Request
	}
	return "Stop " + what + " when the Lease is lost, or end the process."
}

// fewer is the remedy for requests above the budget.
func fewer(f judge.Finding) string {
	if f.Request == "" {
		return "Send fewer requests, or use --update-budget."
	}
	return fmt.Sprintf("Send %s less often, or use --update-budget.", f.Request)
}

// fromCache is the remedy for a resource that is listed again and again.
func fromCache(f judge.Finding) string {
	_, resource, found := strings.Cut(f.Request, " ")
	if !found {
		return "Read the objects from the cache of an informer."
	}
	return fmt.Sprintf("Read %s from the cache of an informer.", resource)
}

// unwedge is the remedy for a write that the server rejects forever.
func unwedge(f judge.Finding) string {
	if f.Request == "" {
		return "Make the new objects acceptable in place of the old ones, or migrate them."
	}
	return fmt.Sprintf("Change no immutable field with %s.", f.Request)
}

// calmDown is the remedy for a loop.
func calmDown(f judge.Finding) string {
	if f.Request == "" {
		return "Write only if something that matters has changed."
	}
	return fmt.Sprintf("Send %s only if it changes something.", f.Request)
}

// allow is the remedy for a missing permission.
func allow(f judge.Finding) string {
	if len(f.Missing) == 0 {
		return "Add the permission to the role, or do not send the request."
	}
	return fmt.Sprintf("Add %s to the role.", listed(f.Missing))
}

// replaceAPI is the remedy for a version of an API that is no longer served.
func replaceAPI(f judge.Finding) string {
	return inPlace("Replace %s by the version that is served.", "Use a version of the API that Kubernetes serves.")(f)
}

// forbid is the remedy for an unused permission.
func forbid(f judge.Finding) string {
	if len(f.Unneeded) == 0 {
		return "Remove the permission from the role, if no situation needs it."
	}
	return fmt.Sprintf("Remove %s from the role, if no situation needs it.", listed(f.Unneeded))
}

// mostListed is the number of permissions that a remedy names.
const mostListed = 3

func listed(permissions []judge.Permission) string {
	var names []string
	for _, p := range permissions {
		names = append(names, p.String())
	}
	if more := len(names) - mostListed; more > 1 {
		return strings.Join(names[:mostListed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// conceal is the remedy for a value of a Secret that can be read elsewhere.
func conceal(f judge.Finding) string {
	if object, _ := f.Place(); hasPath(f, judge.LogPath) {
		return fmt.Sprintf("Do not log the value of %s.", object)
	}
	return inPlace("Leave the value out of %s; refer to the Secret.", "Leave values of Secrets out of messages and logs.")(f)
}

// separate is the remedy for an object that two resources share.
func separate(f judge.Finding) string {
	object, _ := f.Place()
	if object == "" {
		return "Give the children of each resource names of their own, and delete only these."
	}
	kind, _, _ := strings.Cut(object, " ")
	kind, _, _ = strings.Cut(kind, ".")
	return fmt.Sprintf("Give each resource a %s with a name of its own, or delete it with the last of them.", kind)
}

// release is the remedy for an object that the controller takes from somebody.
func release(f judge.Finding) string {
	if object, path := f.Place(); path == "metadata.ownerReferences" && f.Differences[0].Want != "" {
		return fmt.Sprintf("Do not give %s to another owner while its owner exists.", object)
	}
	return inPlace("Leave %s alone, unless its owner reference names your resource.", "Change only objects whose owner reference names your resource.")(f)
}
