package controllers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
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
	Nearest string // the known name most like it, or ""
	Known   []string
}

func (e *UnknownError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("unknown %s %q; did you mean %q?", e.Kind, e.Name, e.Nearest)
	}
	return fmt.Sprintf("unknown %s %q; choose one of: %s", e.Kind, e.Name, strings.Join(e.Known, ", "))
}

// nearest returns the known name with the smallest edit distance, or "" when
// none is near. A suffix that all share tells nothing, so it does not count.
func nearest(name string, known []string) string {
	const suffix = "-controller"
	name = strings.TrimSuffix(name, suffix)
	best, bestDistance := "", 1+len(name)/2
	for _, k := range known {
		d := distance(name, strings.TrimSuffix(k, suffix))
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is Levenshtein's, in bytes: names are ASCII.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substituted := diagonal
			if a[i] != b[j] {
				substituted++
			}
			diagonal = row[j+1]
			row[j+1] = min(substituted, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
