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
// Upstream it is a separate component; here it is selected like a controller.
const Scheduler = "kube-scheduler"

// all stands for every controller that is useful here.
const all = "*"

// A Profile is a named selection of upstream's controllers.
type Profile struct {
	Name        string
	Description string
	Controllers []string // upstream's canonical names, and Scheduler
	// Brought lists what Named added to the names it was given.
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
	// Controllers that upstream's controller manager starts by default and that
	// are useless without a cloud.
	pointless = []string{
		names.NodeIpamController, // hands out Pod CIDRs; simulated nodes draw their own
	}
)

// Profiles lists the profiles; each contains the one before it.
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
// one, and "*" adds all of profile full. As upstream, an explicit name takes
// precedence over "*", wherever "*" stands. If a name is changed twice, the
// later change wins. Names are upstream's canonical ones, their aliases, or
// canonical names without "-controller".
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

// needs lists the controllers that do nothing, or nothing visible to a user,
// without others. All rows are true of v1.37.0; remove a row when upstream
// changes.
var needs = []struct{ name, needs string }{
	// A Deployment makes ReplicaSets and no Pods.
	{names.DeploymentController, names.ReplicaSetController},
	// A CronJob makes Jobs.
	{names.CronJobController, names.JobController},
	// Controllers that make Pods wait until these are Ready or finished, for
	// which the Pods must be on a node. DaemonSet also leaves this to the
	// scheduler, by affinity.
	{names.ReplicaSetController, Scheduler},
	{names.ReplicationControllerController, Scheduler},
	{names.StatefulSetController, Scheduler},
	{names.DaemonSetController, Scheduler},
	{names.JobController, Scheduler},
	// Admission taints each new node as not ready; only this controller removes
	// the taint.
	{Scheduler, names.NodeLifecycleController},
	// It deletes in the foreground: a Job would stay, with a finalizer that
	// only the garbage collector removes.
	{names.TTLAfterFinishedController, names.GarbageCollectorController},
	// It reads what to migrate from the garbage collector's graph.
	{names.StorageVersionMigratorController, names.GarbageCollectorController},
}

// Brought lists what was added because For needs it.
type Brought struct {
	By    string
	Names []string // canonical, each before what it brings itself
}

// String formats the addition for people: names lose "-controller", and nodes,
// which come with the scheduler, are listed too.
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

// sets are the profiles that Named accepts as a name. "gc" is not among them:
// as a controller's name it means only the garbage collector.
var sets = []string{"workloads", "full"}

// Parse reads a list in the form of KOBOSHI_CONTROLLERS: names for Named,
// separated by commas. An empty list means profile api.
func Parse(value string) (Profile, error) {
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return Named(names)
}

// Named returns a profile of exactly the named controllers and the controllers
// they need. Names are as for Select; "workloads" and "full" stand for all
// controllers of that profile, and "*" for those of full. A name with a leading
// "-" is refused: there is nothing to remove it from.
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
	// A controller that is named was not added by a need, even if it is named
	// later.
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
		return nil, fmt.Errorf("controller %q cannot be removed, as only named controllers run; leave it out", name)
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

// bring adds what name needs to running and returns both lists.
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

// RunsServiceAccounts reports whether Pods get their service account, so that
// admission may require it.
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
	Nearest []string // the most similar known names, the best first
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

// suffix is common to upstream's names, so it does not distinguish them.
const suffix = "-controller"

// maxNearest keeps the suggestion shorter than the full list.
const maxNearest = 3

// nearest returns the known name with the smallest edit distance and those that
// are at most one edit further away, or none when no name is near.
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
