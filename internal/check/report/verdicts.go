package report

import (
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// gravity determines the color of a verdict, and its level in SARIF.
type gravity string

const (
	grave  gravity = "error"
	middle gravity = "warning"
	slight gravity = "note"
)

// verdict explains a verdict.
type verdict struct {
	judge.Verdict
	gravity gravity
	// meaning explains the verdict in one sentence. cause names the usual mistake in the
	// code.
	meaning, cause string
	// remedy returns one line that says what to change, with the names of the finding.
	remedy func(judge.Finding) string
	// fixed is the condition under which a finding counts as fixed, if a replay does not show it.
	fixed string
}

// verdicts lists all verdicts in order of severity.
var verdicts = []verdict{
	{judge.Diverged, grave,
		"The cluster did not reach the state that it reaches without the fault, even after the controller was restarted and its resource was changed.",
		"A step is skipped because an earlier step suggests that everything is done, or progress is kept only in memory. Decide each step based on the state of the cluster, not on what was done before.",
		converge, ""},
	{judge.SplitBrain, grave,
		"A process that no longer held the Lease wrote to the cluster.",
		"A controller uses the context of the process instead of the context of its leadership. When the Lease is lost, stop everything that writes, or end the process.",
		resign, ""},
	{judge.DestructiveBlip, grave,
		"The final state is right, but on the way to it, an object was deleted, created, scaled down, changed and changed back, or rolled out again, which does not happen without the fault.",
		"A stale or failed read was treated as the absence of an object. Give deletions preconditions on UID and resourceVersion, and do not handle every error like \"not found\".",
		spare, ""},
	{judge.TakenOver, grave,
		"The controller adopted, changed or deleted an object that it had not made, although nothing asked it to, or took an object from one of its owners for another.",
		"A user's object, or the child of another resource, already had the name of a child. Before an update, check that the resource controls the object, and report a conflict in the status if it does not.",
		release, ""},
	{judge.Collision, grave,
		"Creating or deleting one resource took an object from another resource of the same kind, or changed it.",
		"Children of two resources have the same name, such as a cluster-scoped child that is named after the resource without its namespace, or the controller deletes by a label or a name that both share. Put the name and the namespace of the resource into the name of the child, and delete only what the resource owns.",
		separate, ""},
	{judge.SecretLeaked, grave,
		"The controller wrote the value of a Secret to a place that can be read without the right to read Secrets: a ConfigMap, an Event, a status, an annotation, the definition of a container, or its log.",
		"A message, an error or a copied configuration contains the value. Refer to the Secret with secretKeyRef or a volume, and leave values out of messages and logs.",
		conceal, ""},
	{judge.Invariant, grave,
		"A revision of an object broke a rule that the scenario lists under always.",
		"The controller passes through a state that must never exist, often because it makes a change with two writes. Make the change with one write, or in an order in which each state is allowed.",
		inPlace("Change %s in one write, or in an allowed order.", "Make the change in one write, or in an order in which each state is allowed."), ""},
	{judge.Crashed, grave,
		"The controller panicked or exited on its own.",
		"A value that usually exists was missing, or a temporary error was treated as permanent.",
		survive, ""},
	{judge.StuckTerminating, grave,
		"After the deletion of a resource, or of its namespace, the controller never removed its finalizer from an object, so this object can never go.",
		"The spec is validated before the deletion is handled, the cleanup needs something that is gone as well, such as a Secret, or the controller first creates what is missing, which is refused in a namespace that is being deleted. Handle the deletion before everything else, and treat what is gone as cleaned up.",
		inPlace("Remove %s even if the spec is invalid, or everything else is gone.", "Remove the finalizer even if the spec is invalid, or everything else is gone."), ""},
	{judge.Leak, grave,
		"After the resource was deleted, something was left behind in the cluster or outside it.",
		"The finalizer is added after the first child is created, or removed before the last child is gone, or an owner reference is missing.",
		inPlace("Delete %s before you remove the finalizer, or set its owner.", "Add the finalizer before you create anything outside, and remove it last."), ""},
	{judge.DivergedUntilRestart, middle,
		"The state became right only after the controller listed its objects again or was restarted, or after an annotation was set on its resource.",
		"The controller needed an event that did not come, or its memory no longer agrees with the cluster. Watch everything that a decision depends on, and return an error while work is left.",
		inPlace("Watch what determines %s, and return errors.", "Watch everything that a decision depends on, and return errors."), ""},
	{judge.PathDependent, middle,
		"The same declaration led to different states, depending on which declarations came before it.",
		"A value is not removed when the declaration no longer contains it.",
		inPlace("Compute %s from the current spec alone.", "Compute the state from the current spec alone."), ""},
	{judge.HotLoop, middle,
		"The controller kept writing although nothing was left to do.",
		"The controller compares its desired object with the stored object, although the two always differ in defaults, empty lists, units or order; or its own status update triggers another reconcile. Compare only fields that matter, and write only if they differ.",
		calmDown, ""},
	{judge.RBACMissing, middle,
		"The server refused a request, because the controller's role does not allow it.",
		"The shipped role lacks a rule. With kubebuilder, add a //+kubebuilder:rbac marker and generate the manifests again.",
		allow, "no request is refused in a check"},
	{judge.APIRemoved, middle,
		"The controller uses a version of a built-in API that Kubernetes no longer serves.",
		"The code was written for an older Kubernetes. Use the version that replaces it; since it is served by all supported versions of Kubernetes, no other code is needed.",
		replaceAPI, ""},
	{judge.DataLost, grave,
		"After an upgrade, or after an upgrade and the way back, a value that a user had stored can no longer be read, or is different.",
		"A field was removed or renamed in a version of the API that users already have, a conversion drops it, or the controller overwrites it. Keep the field in this version, and make the change in a new version with a conversion that loses nothing.",
		inPlace("Keep %s readable in every version that has it.", "Keep every stored value readable in every version of the API."), "an upgrade no longer shows it"},
	{judge.ConversionLossy, grave,
		"An object that is written in one version of its kind, read in another version and written back unchanged has lost a value, or has a different one.",
		"The conversion does not set a field, the two versions cannot express the same values, or the schema of a version lacks a field that the conversion sets. Convert every field in both directions, and keep what a version cannot express in an annotation.",
		inPlace("Convert %s in both directions, or annotate it.", "Convert every field in both directions, or keep it in an annotation."), ""},
	{judge.Wedged, grave,
		"After an upgrade, the API server rejects what the new version writes, and will reject it forever.",
		"The new version changes an immutable field of an existing object, such as the selector of a Deployment, or its schema forbids stored objects. Keep the old value for existing objects, or delete and create the object in a migration.",
		unwedge, "an upgrade no longer shows it"},
	{judge.StoredVersionsStuck, grave,
		"The API server refuses the new CRD, because objects may still be stored in a version that the new CRD lacks.",
		"A version was removed from the CRD before its objects were migrated. Keep the version with served: false until a migration has rewritten all objects and removed the version from status.storedVersions.",
		func(judge.Finding) string {
			return "Keep the version in the CRD, with served: false, until all objects are migrated."
		}, "an upgrade no longer shows it"},
	{judge.UpgradeChurn, middle,
		"The upgrade replaced running Pods, or deleted an object that is in use, although no user had changed a resource.",
		"The new version renders another template, selector or name for the same resource. Leave existing objects as they are until the user changes the resource, or announce the change in the release notes and list it under check.upgrade.expected.",
		inPlace("Keep %s for existing objects.", "Keep existing objects as they are."), "an upgrade no longer shows it"},
	{judge.NotAsFresh, middle,
		"After the upgrade, the cluster is in another state than after a fresh installation of the new version with the same resources.",
		"The new version creates objects, but does not update or remove those of the old version. In every reconcile, compare existing objects with the declared ones, and delete what the old version needed.",
		inPlace("Update or remove %s in old installations, too.", "Update existing objects in every reconcile."), "an upgrade no longer shows it"},
	{judge.DowngradeBroken, middle,
		"After the way back to the old version, the old version cannot work, or objects are not as the old version had left them.",
		"The new version stores something that the old version cannot read or change. Introduce a new version of the API one release before it becomes the storage version. If a downgrade is not supported, set check.upgrade.oneWay.",
		inPlace("Keep %s usable for the old version.", "Keep what is stored usable for the old version."), "an upgrade no longer shows it"},
	{judge.RecoveredLate, slight,
		"The state became right only when the controller looked at it again for another reason: at its next regular reconcile, or when its watches timed out and it started new ones. Koboshi waited for the reconcile, but ended the watches early.",
		"The controller missed an event, or gave up after an error, and noticed it only because it regularly looks at all objects again. This is right if recovering that late is soon enough. Otherwise, watch everything that a decision depends on, and try again after an error.",
		inPlace("Watch what determines %s, and return errors.", "Watch everything that a decision depends on, and return errors."), "a check no longer lists it"},
	{judge.SuiteFailed, slight,
		"The test suite that drives the check failed after the fault, although the controller was still working, or the state was that of the runs without the fault.",
		"A fault takes time, and the suite waits for less than that, or it asserts something that a restart or a retry may change, such as a number of Events. This is right if the suite is meant to be that strict. Otherwise, let it wait for longer.",
		func(judge.Finding) string {
			return "Let the suite wait for longer, or assert only what a retry does not change."
		}, "a check no longer lists it"},
	{judge.NotRestored, slight,
		"Another client deleted or changed an object that the controller had made, and the controller did not restore it, even after a restart.",
		"The controller creates the object once, or does not compare all fields. This is right if users may change the object. Otherwise, watch the kind, and in each reconcile, compare the existing object with the declared one.",
		inPlace("Watch %s, and restore it in every reconcile.", "Watch the object, and restore it in every reconcile."), "a check no longer lists it"},
	{judge.GaveUp, slight,
		"A request failed, and the controller never tried again. The resource is otherwise as it should be, and one of its conditions reports the failure.",
		"The controller treats the action as optional, and every error as permanent. This is right if users watch the condition and act on it. Otherwise, return the error, and record the action as done only after it has succeeded.",
		inPlace("Repeat what %s needs until it succeeds.", "Repeat the action until it succeeds."), "a check no longer lists it"},
	{judge.RBACUnused, slight,
		"The role allows something that the controller never requested in this check.",
		"Remove the rule if it is never needed. It may be needed in a situation that no scenario covered.",
		forbid, "a check no longer lists it"},
	{judge.RefusedLate, slight,
		"The schema of the custom resource admits what the controller cannot do: the API server rejects one of its writes for ever, and no status says so.",
		"A name or a value is copied into a child whose fields have narrower rules, or an immutable field of a child is changed. Reject the value in the schema, or report the problem in a condition.",
		inPlace("Validate what becomes %s, or report it in the status.", "Reject the value in the schema, or report the problem in the status."), "a check no longer lists it"},
	{judge.BlastRadius, slight,
		"After a change of one resource with which the controller could not cope, it did nothing for another resource of the same kind.",
		"The controller handles all resources in one pass, which an error ends, or waits in its only worker. Handle each resource on its own, return the error, and requeue; never wait for one resource while others are due.",
		inPlace("With a bad %s, fail for this resource alone.", "Let a bad resource fail alone: return the error, and go on with the others."), "a check no longer lists it"},
	{judge.NeverReady, slight,
		"A resource that was ready did not become ready again after a field got another valid value, and its status does not say what is wrong.",
		"The controller waits for something that the new value makes impossible, or its comparison with the children fails for this value. Reject the value in the schema, or say in the condition what is missing.",
		inPlace("Say in the status what keeps %s from working.", "Say in the status what keeps the resource from becoming ready."), "a check no longer lists it"},
	{judge.CreationOnly, slight,
		"A change of a resource left a child as it was, although the controller makes this child differently if the resource is created with the same spec.",
		"The controller uses the field only when it creates the child. This is right if the field cannot be changed later, as with the initial content of a database; then make it immutable in the schema. Otherwise, compare the existing child with the declared one in each reconcile.",
		inPlace("Compare %s with the spec in each reconcile.", "Compare the child with the spec in each reconcile."), "a check no longer lists it"},
	{judge.InertField, slight,
		"A field was changed and changed back, and the controller did nothing except noting the new generation.",
		"The controller does not use the field, or ignores changes after the creation. This is right if the field matters only later, such as at the deletion. Otherwise, apply the change, or make the field immutable in the schema.",
		inPlace("Apply changes of %s, or make it immutable.", "Apply changes of the field, or make it immutable in the schema."), "a check no longer lists it"},
	{judge.MoreRequests, slight,
		"Without a fault, a scenario needs more requests of one kind than the budget of the project allows: at least 10 more, and more than half as many again, in every run.",
		"A change of the controller reads from the API server what it read from its cache before, writes what is already right, or reconciles more often. This is right if the new behavior is worth it; then update the budget.",
		fewer, "a check no longer lists it"},
	{judge.UnboundedLists, slight,
		"Again and again, the controller lists all objects of a resource directly from the API server, without a limit or a selector, and not to begin a watch.",
		"A client without a cache, such as an APIReader or a clientset, is used in each reconcile. The server then sends all objects each time, so the cost grows with the number of objects times the number of changes. This is right if there can only be a few objects. Otherwise, read from the cache of an informer, or select the objects that are needed.",
		fromCache, "a check no longer lists it"},
	{judge.EventStorm, slight,
		"At rest, the controller kept writing the same Event about an object.",
		"An Event is recorded in each reconcile, and something triggers a reconcile again and again. The API server stores each Event. Record an Event only when something has changed.",
		func(judge.Finding) string { return "Record the Event only when something has changed." }, "a check no longer lists it"},
}

// about returns the explanation of a verdict. A verdict from a later version gets a general
// explanation.
func about(v judge.Verdict) verdict {
	if i := rank(v); i < len(verdicts) {
		return verdicts[i]
	}
	return verdict{Verdict: v, gravity: middle, meaning: "This version of koboshi does not know the verdict."}
}

func rank(v judge.Verdict) int {
	i := slices.IndexFunc(verdicts, func(known verdict) bool { return known.Verdict == v })
	if i < 0 {
		return len(verdicts)
	}
	return i
}
