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

// Scheduler is the name by which a selection adds or removes kube-scheduler.
// It is a component of its own upstream, and chosen like a controller here.
const Scheduler = "kube-scheduler"

// all stands for every controller that makes sense here.
const all = "*"

// A Profile is a named selection of upstream's controllers.
type Profile struct {
	Name        string
	Description string
	Controllers []string // upstream's canonical names, and Scheduler
	// Brought tells what Named added to the names it was given.
	Brought []Brought
}

// Each profile adds to the one above it.
var (
	gc = []string{
		names.GarbageCollectorController,
		names.NamespaceController,
		names.ServiceAccountController,
		names.ServiceAccountTokenController,
		names.RootCACertificatePublisherController, // every Pod mounts its ConfigMap
		names.ClusterRoleAggregationController,     // admin, edit and view are empty without it
	}
	workloads = []string{
		names.DeploymentController,
		names.ReplicaSetController,
		names.StatefulSetController,
		names.DaemonSetController,
		names.JobController,
		names.CronJobController,
		names.EndpointSliceController,
		names.DisruptionController,
		names.PodGarbageCollectorController, // Pods of a removed node would stay for ever
		names.NodeLifecycleController,       // a new node is tainted until this finds it Ready
		Scheduler,
	}
	// What upstream's controller manager starts by default and a plane without
	// a cloud has no use for.
	pointless = []string{
		names.NodeIpamController, // hands out Pod CIDRs; simulated nodes draw their own
	}
)

// Profiles lists the selections in the order in which each contains the one before.
func Profiles() []Profile {
	full := append(app.KnownControllers(), Scheduler)
	full = slices.DeleteFunc(full, func(name string) bool {
		return slices.Contains(app.ControllersDisabledByDefault(), name) || slices.Contains(pointless, name)
	})
	return []Profile{
		{Name: "api", Description: "what envtest runs: etcd and kube-apiserver, no controllers"},
		{Name: "gc", Description: "and garbage collection, namespace lifecycle, service accounts", Controllers: gc},
		{Name: "workloads", Description: "and Deployments to CronJobs, EndpointSlices, the scheduler, nodes", Controllers: slices.Concat(gc, workloads)},
		{Name: "full", Description: "all of kube-controller-manager that makes sense without a cloud", Controllers: full},
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

// Select changes the profile's controllers: "name" adds one, "-name" removes
// one, "*" adds all of profile full and, wherever it stands, gives way to what
// is named, as upstream has it. Of two changes of one name the later wins.
// Names are upstream's canonical ones, their aliases, or canonical names
// without "-controller".
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

// needs says which controllers do nothing, or nothing that a user could see,
// without others. All of v1.37.0; a row that upstream outgrows is taken out.
var needs = []struct{ name, needs string }{
	// A Deployment makes ReplicaSets and no Pods.
	{names.DeploymentController, names.ReplicaSetController},
	// A CronJob makes Jobs.
	{names.CronJobController, names.JobController},
	// Those that make Pods wait for them to be Ready or to end, for which they
	// must be on a node. DaemonSet leaves it to the scheduler too, by affinity.
	{names.ReplicaSetController, Scheduler},
	{names.ReplicationControllerController, Scheduler},
	{names.StatefulSetController, Scheduler},
	{names.DaemonSetController, Scheduler},
	{names.JobController, Scheduler},
	// Admission taints each new node as not ready; only this one unties it.
	{Scheduler, names.NodeLifecycleController},
	// It deletes in the foreground: a Job would stay, with a finalizer that only
	// the garbage collector removes.
	{names.TTLAfterFinishedController, names.GarbageCollectorController},
	// It reads what to migrate from the garbage collector's graph.
	{names.StorageVersionMigratorController, names.GarbageCollectorController},
}

// Brought is what the first named controller or set that needs them brings.
type Brought struct {
	By    string
	Names []string // canonical, each before what it brings itself
}

// String is for people: names are without "-controller", and nodes are named
// too, which come with the scheduler.
func (b Brought) String() string {
	short := func(name string) string { return strings.TrimSuffix(name, suffix) }
	var brought []string
	for _, name := range b.Names {
		brought = append(brought, short(name))
	}
	if b.By == Scheduler || slices.Contains(b.Names, Scheduler) {
		brought = append(brought, "a simulated node")
	}
	return short(b.By) + " brings " + strings.Join(brought, ", ")
}

// sets are the profiles that Named takes as a name. "gc" is not among them: as
// a controller's name it means the garbage collector, and nothing more.
var sets = []string{"workloads", "full"}

// Parse reads a list as KOBOSHI_CONTROLLERS holds it: names for Named with
// commas between. An empty list is profile api.
func Parse(value string) (Profile, error) {
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return Named(names)
}

// Named returns a profile of exactly the named controllers and what they
// cannot work without. Names are those of Select; profiles workloads and full
// stand for all that they run, and so does "*" for full. With a "-" before it
// a name is refused: there is nothing to take it from.
func Named(selection []string) (Profile, error) {
	if len(selection) == 0 {
		return Lookup("api")
	}
	p := Profile{
		Name:        strings.Join(selection, ","),
		Description: "what envtest runs, and the controllers that were named",
	}
	for _, name := range selection {
		named, err := named(name)
		if err != nil {
			return Profile{}, err
		}
		p.Controllers = append(p.Controllers, named...)
	}
	// What is named is not brought, even if it stands further back.
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

// named resolves one name of a selection.
func named(name string) ([]string, error) {
	if strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("controller %q cannot be taken away, as only those that are named run; leave it out", name)
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

// bring adds to running what name needs and returns both.
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

// Has reports whether the profile runs the controller of that canonical name.
func (p Profile) Has(name string) bool { return slices.Contains(p.Controllers, name) }

// RunsManager reports whether the profile runs any controller of kube-controller-manager.
func (p Profile) RunsManager() bool {
	return slices.ContainsFunc(p.Controllers, func(name string) bool { return name != Scheduler })
}

// RunsServiceAccounts reports whether Pods get their service account, so that
// admission may ask for it.
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

// UnknownError is a name that nothing has.
type UnknownError struct {
	Kind    string // "profile" or "controller"
	Name    string
	Nearest []string // the known names most like it, the most like first
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

// suffix is what upstream's names share, so that it tells nothing of one.
const suffix = "-controller"

// maxNearest keeps an answer shorter than the list it is chosen from.
const maxNearest = 3

// nearest returns the known name with the smallest edit distance, and those
// that are one edit further at most; none when no name is near.
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
