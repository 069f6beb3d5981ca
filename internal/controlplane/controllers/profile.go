package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/koboshi-dev/koboshi/internal/spelling"
)

// Scheduler is the name by which a selection adds or removes kube-scheduler. In upstream,
// kube-scheduler is a separate component; here it is selected like a controller.
const Scheduler = "kube-scheduler"

// all is the name for all controllers of profile full.
const all = "*"

// A Profile is a named selection of upstream's controllers.
type Profile struct {
	Name        string
	Description string
	Controllers []string // upstream's canonical names, and Scheduler
	// Brought lists the controllers that Named added to those that the caller named.
	Brought []Brought
}

// Each profile contains the controllers of the profile above it, and adds more.
var (
	gc = []string{
		names.GarbageCollectorController,
		names.NamespaceController,
		names.ServiceAccountController,
		names.ServiceAccountTokenController,
		names.RootCACertificatePublisherController, // every Pod mounts the ConfigMap that this publishes
		names.ClusterRoleAggregationController,     // without this, the roles admin, edit and view are empty
	}
	workloads = []string{
		names.DeploymentController,
		names.ReplicaSetController,
		names.StatefulSetController,
		names.DaemonSetController,
		names.JobController,
		names.CronJobController,
		names.EndpointSliceController,
		names.EndpointsController,              // many operators still read Endpoints
		names.EndpointSliceMirroringController, // for Services whose Endpoints an operator writes
		names.DisruptionController,
		// Admission adds a finalizer to each claim and volume; only these two controllers remove
		// the finalizers.
		names.PersistentVolumeClaimProtectionController,
		names.PersistentVolumeProtectionController,
		names.PersistentVolumeBinderController, // Pods with an unbound claim are not scheduled
		names.EphemeralVolumeController,        // creates the claims of Pods with ephemeral volumes
		names.PodGarbageCollectorController,    // without this, Pods of a removed node would stay forever
		names.NodeLifecycleController,          // without this, a new node would stay tainted as not ready
		Scheduler,
	}
	// pointless lists the controllers that upstream's controller manager starts by
	// default but that are useless without a cloud.
	pointless = []string{
		names.NodeIpamController, // hands out Pod CIDRs; simulated nodes choose their own
	}
)

// Profiles lists the profiles; each contains the one before it.
func Profiles() []Profile {
	full := append(app.KnownControllers(), Scheduler)
	full = slices.DeleteFunc(full, func(name string) bool {
		return slices.Contains(app.ControllersDisabledByDefault(), name) || slices.Contains(pointless, name)
	})
	return []Profile{
		{Name: "api", Description: "etcd and kube-apiserver without controllers, as in envtest"},
		{Name: "gc", Description: "adds garbage collection, namespace lifecycle and service accounts", Controllers: gc},
		{Name: "workloads", Description: "adds workloads, Endpoints, volumes, the scheduler and nodes", Controllers: slices.Concat(gc, workloads)},
		{Name: "full", Description: "adds all other upstream controllers that are useful without a cloud", Controllers: full},
	}
}

// Lookup finds a profile by name.
func Lookup(name string) (Profile, error) {
	var known []string
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		known = append(known, p.Name)
	}
	return Profile{}, &UnknownError{Kind: "profile", Name: name, Nearest: nearest(name, known), Known: known}
}

// Select changes the profile's controllers: "name" adds one, "-name" removes one, and "*"
// adds all of profile full. As in upstream, an explicit name takes precedence over "*",
// regardless of their order. If a name is changed twice, the later change wins. Names are
// upstream's canonical ones, their aliases, or canonical names without "-controller".
func (p Profile) Select(changes []string) (Profile, error) {
	selected := slices.Clone(p.Controllers)
	if slices.Contains(changes, all) {
		full, err := Lookup("full")
		if err != nil {
			return Profile{}, err
		}
		selected = append(selected, full.Controllers...)
	}
	for _, change := range changes {
		if change == all {
			continue
		}
		bare, remove := strings.CutPrefix(change, "-")
		name, err := canonical(strings.TrimPrefix(bare, "+"))
		if err != nil {
			return Profile{}, err
		}
		selected = slices.DeleteFunc(selected, func(s string) bool { return s == name })
		if !remove {
			selected = append(selected, name)
		}
	}
	slices.Sort(selected)
	p.Controllers = slices.Compact(selected)
	return p, nil
}

// needs lists the controllers that have no effect visible to a user unless another controller also
// runs. All rows are correct for v1.37.0; remove a row if upstream makes it unnecessary.
var needs = []struct{ name, needs string }{
	// A Deployment creates ReplicaSets, not Pods.
	{names.DeploymentController, names.ReplicaSetController},
	// A CronJob creates Jobs, not Pods.
	{names.CronJobController, names.JobController},
	// Controllers that create Pods wait until the Pods are Ready or finished, which
	// requires that the Pods are on a node. The DaemonSet controller also needs the
	// scheduler, because it only gives each Pod an affinity to a node.
	{names.ReplicaSetController, Scheduler},
	{names.ReplicationControllerController, Scheduler},
	{names.StatefulSetController, Scheduler},
	{names.DaemonSetController, Scheduler},
	{names.JobController, Scheduler},
	// Admission taints each new node as not ready; only the node lifecycle controller
	// removes the taint.
	{Scheduler, names.NodeLifecycleController},
	// The TTL-after-finished controller deletes Jobs in the foreground: each Job gets a
	// finalizer that only the garbage collector removes.
	{names.TTLAfterFinishedController, names.GarbageCollectorController},
	// The storage version migrator finds the objects to migrate in the garbage collector's
	// graph.
	{names.StorageVersionMigratorController, names.GarbageCollectorController},
}

// Brought lists the controllers that were added because the controller By needs them.
type Brought struct {
	By    string
	Names []string // canonical; each is followed by the controllers that it needs
}

// String formats the addition for people. String removes "-controller" from names, and also lists
// the node that comes with the scheduler.
func (b Brought) String() string {
	short := func(name string) string { return strings.TrimSuffix(name, suffix) }
	var brought []string
	for _, name := range b.Names {
		brought = append(brought, short(name))
	}
	if b.By == Scheduler || slices.Contains(b.Names, Scheduler) {
		brought = append(brought, "a simulated node")
	}
	return short(b.By) + " also starts " + strings.Join(brought, ", ")
}

// sets holds the names of the profiles that may be passed to the function Named. The profile
// "gc" is not one of them, because Named takes "gc" for the garbage collector alone.
var sets = []string{"workloads", "full"}

// Parse reads a list in the format of KOBOSHI_CONTROLLERS: names for Named, separated by
// commas. An empty list means profile api.
func Parse(value string) (Profile, error) {
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return Named(names)
}

// Named returns a profile of exactly the named controllers and the controllers they need.
// Named accepts the same names as Select. "workloads" and "full" stand for all controllers of
// the profile with that name, and "*" means the same as "full". A name with a leading "-" is
// refused, because there is no profile to remove it from.
func Named(selection []string) (Profile, error) {
	if len(selection) == 0 {
		return Lookup("api")
	}
	p := Profile{
		Name:        strings.Join(selection, ","),
		Description: "the components that envtest runs, and the named controllers",
	}
	for _, name := range selection {
		named, err := named(name)
		if err != nil {
			return Profile{}, err
		}
		p.Controllers = append(p.Controllers, named...)
	}
	// All named controllers are added to the profile before this loop. So no named controller is
	// recorded as brought by another one, whatever the order of the names.
	for _, name := range slices.Clone(p.Controllers) {
		var brought []string
		if p.Controllers, brought = bring(p.Controllers, name); len(brought) > 0 {
			p.Brought = append(p.Brought, Brought{By: name, Names: brought})
		}
	}
	slices.Sort(p.Controllers)
	p.Controllers = slices.Compact(p.Controllers)
	return p, nil
}

// named returns the controllers for one name of a selection.
func named(name string) ([]string, error) {
	if strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("controller %q cannot be removed, because only the named controllers run; omit it", name)
	}
	if name == all {
		name = "full"
	}
	if slices.Contains(sets, name) {
		p, err := Lookup(name)
		return p.Controllers, err
	}
	found, err := canonical(strings.TrimPrefix(name, "+"))
	var unknown *UnknownError
	if errors.As(err, &unknown) {
		unknown.Known = slices.Concat(sets, unknown.Known)
		unknown.Nearest = nearest(unknown.Name, unknown.Known)
	}
	return []string{found}, err
}

// bring extends the list running with the controllers that name needs, and returns the new list and
// the added controllers.
func bring(running []string, name string) (all, brought []string) {
	for _, n := range needs {
		if n.name != name || slices.Contains(running, n.needs) {
			continue
		}
		running = append(running, n.needs)
		brought = append(brought, n.needs)
		var more []string
		running, more = bring(running, n.needs)
		brought = append(brought, more...)
	}
	return running, brought
}

// Has reports whether the profile runs the controller with that canonical name.
func (p Profile) Has(name string) bool { return slices.Contains(p.Controllers, name) }

// RunsManager reports whether the profile runs any controller of kube-controller-manager.
func (p Profile) RunsManager() bool {
	return slices.ContainsFunc(p.Controllers, func(name string) bool { return name != Scheduler })
}

// BindsVolumes reports whether upstream's binder runs, which needs a default StorageClass
// and a provisioner.
func (p Profile) BindsVolumes() bool { return p.Has(names.PersistentVolumeBinderController) }

// RunsServiceAccounts reports whether default service accounts are created for Pods, so
// that admission may require them.
func (p Profile) RunsServiceAccounts() bool { return p.Has(names.ServiceAccountController) }

func canonical(name string) (string, error) {
	known := append(app.KnownControllers(), Scheduler)
	aliases := app.ControllerAliases()
	aliases["gc"] = names.GarbageCollectorController
	aliases["scheduler"] = Scheduler
	for _, candidate := range []string{name, name + "-controller"} {
		if slices.Contains(known, candidate) {
			return candidate, nil
		}
	}
	if full, ok := aliases[name]; ok {
		return full, nil
	}
	return "", &UnknownError{Kind: "controller", Name: name, Nearest: nearest(name, known), Known: known}
}

// UnknownError reports a name that no profile or controller has.
type UnknownError struct {
	Kind    string // "profile" or "controller"
	Name    string
	Nearest []string // the most similar known names, the closest first
	Known   []string
}

func (e *UnknownError) Error() string {
	if len(e.Nearest) > 0 {
		return fmt.Sprintf("unknown %s %q; did you mean %s?", e.Kind, e.Name, either(e.Nearest))
	}
	return fmt.Sprintf("unknown %s %q; choose one of: %s", e.Kind, e.Name, strings.Join(e.Known, ", "))
}

// either lists quoted names as alternatives.
func either(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i == len(names)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(name))
	}
	return b.String()
}

// suffix is the common ending of upstream's names. nearest ignores it when it compares
// names.
const suffix = "-controller"

// maxNearest keeps a suggestion shorter than the full list.
const maxNearest = 3

// nearest returns the known names whose edit distance is the smallest or at most one more, or none
// if no name is close enough.
func nearest(name string, known []string) []string {
	name = strings.TrimSuffix(name, suffix)
	limit := 1 + len(name)/2
	byDistance := make([][]string, limit)
	for _, k := range known {
		if d := spelling.Distance(name, strings.TrimSuffix(k, suffix)); d < limit {
			byDistance[d] = append(byDistance[d], k)
		}
	}
	for d, names := range byDistance {
		if len(names) == 0 {
			continue
		}
		if d+1 < limit {
			names = append(names, byDistance[d+1]...)
		}
		return names[:min(len(names), maxNearest)]
	}
	return nil
}
