package controllers

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func TestEachProfileContainsTheOneBefore(t *testing.T) {
	t.Parallel()
	profiles := Profiles()
	for i, p := range profiles[1:] {
		before := profiles[i]
		for _, name := range before.Controllers {
			if !p.Has(name) {
				t.Errorf("%s runs %s and %s does not", before.Name, name, p.Name)
			}
		}
		if len(p.Controllers) <= len(before.Controllers) {
			t.Errorf("%s adds no controller to %s", p.Name, before.Name)
		}
	}
}

func TestVolumesAreBoundFromProfileWorkloadsOn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"api": false, "gc": false, "workloads": true, "full": true} {
		if got := profile(t, name).BindsVolumes(); got != want {
			t.Errorf("profile %s binds volumes: %t, want %t", name, got, want)
		}
	}
	for change, want := range map[string]bool{"persistentvolume-binder": true, "-persistentvolume-binder": false} {
		p, err := profile(t, "workloads").Select([]string{change})
		if err != nil || p.BindsVolumes() != want {
			t.Errorf("%s: %t (%v), want %t", change, p.BindsVolumes(), err, want)
		}
	}
}

func TestEveryProfileNamesWhatUpstreamHas(t *testing.T) {
	t.Parallel()
	known := append(app.KnownControllers(), Scheduler)
	for _, p := range Profiles() {
		sorted := slices.Sorted(slices.Values(p.Controllers))
		if unique := slices.Compact(slices.Clone(sorted)); len(unique) != len(sorted) {
			t.Errorf("%s names a controller twice: %q", p.Name, sorted)
		}
		for _, name := range sorted {
			if !slices.Contains(known, name) {
				t.Errorf("%s names %q, which upstream does not know", p.Name, name)
			}
			if slices.Contains(app.ControllersDisabledByDefault(), name) {
				t.Errorf("%s names %q, which upstream does not run by default", p.Name, name)
			}
		}
		found, err := Lookup(p.Name)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(p, found); diff != "" {
			t.Errorf("Lookup(%q) (-want +got):\n%s", p.Name, diff)
		}
	}
}

func TestWhatUpstreamRunsByDefaultIsInFullOrHasAReason(t *testing.T) {
	t.Parallel()
	full := profile(t, "full")
	for _, name := range app.KnownControllers() {
		if slices.Contains(app.ControllersDisabledByDefault(), name) || slices.Contains(pointless, name) {
			continue
		}
		if !full.Has(name) {
			t.Errorf("%s is on by default in upstream, but is neither in full nor in pointless", name)
		}
	}
	for _, name := range pointless {
		if !slices.Contains(app.KnownControllers(), name) {
			t.Errorf("pointless lists %s, which upstream no longer has", name)
		}
	}
}

func TestSelectAddsAndRemovesInOrder(t *testing.T) {
	t.Parallel()
	full := slices.Sorted(slices.Values(profile(t, "full").Controllers))
	without := func(names []string, name string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	}
	const deployment, collector = "deployment-controller", "garbage-collector-controller"
	tests := []struct {
		profile string
		changes []string
		want    []string
	}{
		{"api", nil, nil},
		{"api", []string{deployment}, []string{deployment}},
		{"api", []string{"deployment"}, []string{deployment}},
		{"api", []string{"+deployment"}, []string{deployment}},
		{"api", []string{"gc"}, []string{collector}},
		{"api", []string{"garbagecollector"}, []string{collector}},
		{"api", []string{"garbage-collector"}, []string{collector}},
		{"api", []string{"scheduler"}, []string{Scheduler}},
		{"api", []string{"kube-scheduler"}, []string{Scheduler}},
		{"api", []string{"tokencleaner"}, []string{"token-cleaner-controller"}}, // off by default upstream
		{"api", []string{"deployment", "gc", "deployment"}, []string{deployment, collector}},
		{"api", []string{"deployment", "-deployment"}, nil},
		{"api", []string{"-deployment", "deployment"}, []string{deployment}},
		{"api", []string{"-deployment"}, nil},
		{"api", []string{"*"}, full},
		{"api", []string{"*", "-deployment"}, without(full, deployment)},
		{"full", []string{"*"}, full},
		{"full", []string{"-gc"}, without(full, collector)},
		{"full", []string{"-scheduler"}, without(full, Scheduler)},
	}
	for _, test := range tests {
		t.Run(test.profile+" "+strings.Join(test.changes, ","), func(t *testing.T) {
			t.Parallel()
			p := profile(t, test.profile)
			before := slices.Clone(p.Controllers)
			got, err := p.Select(test.changes)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Controllers, test.want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(test.want, got.Controllers))
			}
			if !slices.Equal(before, p.Controllers) {
				t.Error("Select changed the profile it was called on")
			}
		})
	}
}

// As in upstream, a controller that is removed stays removed, with or without
// "*".
func TestSelectKeepsOutWhatIsRemovedBeforeTheStar(t *testing.T) {
	t.Parallel()
	got, err := profile(t, "api").Select([]string{"-deployment", "*"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Has("deployment-controller") {
		t.Error(`["-deployment" "*"] runs the Deployment controller; upstream's --controllers=-deployment,* does not`)
	}
}

func TestEveryAliasOfUpstreamIsUnderstood(t *testing.T) {
	t.Parallel()
	for alias, name := range app.ControllerAliases() {
		if got, err := canonical(alias); err != nil || got != name {
			t.Errorf("%s: %q (%v), want %s", alias, got, err, name)
		}
	}
}

func TestATypoIsAnsweredWithTheNearestName(t *testing.T) {
	t.Parallel()
	choose := func(kind, name string) error {
		if kind == "profile" {
			_, err := Lookup(name)
			return err
		}
		_, err := Profile{}.Select([]string{name})
		return err
	}
	for _, test := range []struct {
		kind, name string
		nearest    []string
	}{
		{"profile", "ful", []string{"full"}},
		{"profile", "workload", []string{"workloads"}},
		{"profile", "API", nil},
		{"profile", "", nil},
		{"profile", "everything", nil},
		{"controller", "deploymnt", []string{"deployment-controller"}},
		{"controller", "-deploymnt", []string{"deployment-controller"}},
		{"controller", "statefullset", []string{"statefulset-controller"}},
		{"controller", "garbage-colector-controller", []string{"garbage-collector-controller"}},
		{"controller", "kube-schedular", []string{Scheduler}},
		{"controller", "jo", []string{"job-controller"}},
		{"controller", "persistentvolum-protection", []string{"persistentvolume-protection-controller"}},
		{"controller", "persistentvolume-bunder", []string{"persistentvolume-binder-controller"}},
		{"controller", "certificatesigningrequest", []string{
			"certificatesigningrequest-cleaner-controller",
			"certificatesigningrequest-signing-controller",
		}},
		{"controller", "", nil},
		{"controller", "-", nil},
		{"controller", "x", nil},
		{"controller", "-*", nil},
	} {
		var unknown *UnknownError
		if err := choose(test.kind, test.name); !errors.As(err, &unknown) {
			t.Errorf("%s %q: %v, want an *UnknownError", test.kind, test.name, err)
			continue
		}
		if !slices.Equal(unknown.Nearest, test.nearest) || unknown.Kind != test.kind {
			t.Errorf("%s %q: nearest %s is %q, want %q", test.kind, test.name, unknown.Kind, unknown.Nearest, test.nearest)
		}
		next := "did you mean " // or, if no name is similar, a list of all names
		if len(test.nearest) == 0 {
			next = "choose one of: " + unknown.Known[0]
		}
		if got := unknown.Error(); !strings.Contains(got, next) || strings.Contains(got, "\n") {
			t.Errorf("%q does not contain %q, or has several lines", got, next)
		}
	}
}

func TestAlternativesReadAsASentence(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		names []string
		want  string
	}{
		{[]string{"a"}, `"a"`},
		{[]string{"a", "b"}, `"a" or "b"`},
		{[]string{"a", "b", "c"}, `"a", "b" or "c"`},
	} {
		if got := either(test.names); got != test.want {
			t.Errorf("%q: %s, want %s", test.names, got, test.want)
		}
	}
}

func TestASelectionIsWhatIsNamedAndWhatThatNeeds(t *testing.T) {
	t.Parallel()
	const (
		collector  = "garbage-collector-controller"
		namespace  = "namespace-controller"
		deployment = "deployment-controller"
		replicaset = "replicaset-controller"
		lifecycle  = "node-lifecycle-controller"
		job        = "job-controller"
	)
	tests := []struct {
		value string
		want  []string
		says  []string
	}{
		{"", nil, nil},
		{" , ", nil, nil},
		{"gc", []string{collector}, nil},
		{"garbagecollector", []string{collector}, nil},
		{" gc, namespace ,", []string{collector, namespace}, nil},
		{"gc,gc,garbage-collector-controller", []string{collector}, nil},
		{"gc,namespace,deployment", []string{deployment, collector, Scheduler, namespace, lifecycle, replicaset},
			[]string{"deployment also starts replicaset, kube-scheduler, node-lifecycle, a simulated node"}},
		{"deployment,replicaset", []string{deployment, Scheduler, lifecycle, replicaset},
			[]string{"replicaset also starts kube-scheduler, node-lifecycle, a simulated node"}},
		{"deployment,replicaset,scheduler,nodelifecycle", []string{deployment, Scheduler, lifecycle, replicaset}, nil},
		{"scheduler", []string{Scheduler, lifecycle}, []string{"kube-scheduler also starts node-lifecycle, a simulated node"}},
		{"cronjob", []string{"cronjob-controller", job, Scheduler, lifecycle},
			[]string{"cronjob also starts job, kube-scheduler, node-lifecycle, a simulated node"}},
		{"statefulset,daemonset", []string{"daemonset-controller", Scheduler, lifecycle, "statefulset-controller"},
			[]string{"statefulset also starts kube-scheduler, node-lifecycle, a simulated node"}},
		{"ttl-after-finished,deployment", []string{deployment, collector, Scheduler, lifecycle, replicaset, "ttl-after-finished-controller"},
			[]string{"ttl-after-finished also starts garbage-collector", "deployment also starts replicaset, kube-scheduler, node-lifecycle, a simulated node"}},
		{"endpointslice", []string{"endpointslice-controller"}, nil},
		{"tokencleaner", []string{"token-cleaner-controller"}, nil}, // off by default upstream
		{"workloads", profile(t, "workloads").Controllers, nil},
		{"full", profile(t, "full").Controllers, nil},
		{"*", profile(t, "full").Controllers, nil},
		{"workloads,tokencleaner", append(profile(t, "workloads").Controllers, "token-cleaner-controller"), nil},
	}
	for _, test := range tests {
		t.Run(test.value, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(test.value)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Sorted(slices.Values(test.want))
			if !slices.Equal(got.Controllers, want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want, got.Controllers))
			}
			var says []string
			for _, b := range got.Brought {
				says = append(says, b.String())
			}
			if diff := cmp.Diff(test.says, says); diff != "" {
				t.Errorf("the brought controllers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASelectionTakesNothingAway(t *testing.T) {
	t.Parallel()
	_, err := Parse("full,-deployment")
	if err == nil {
		t.Fatal("the selection was accepted")
	}
	if want := `controller "-deployment" cannot be removed, because only the named controllers run; omit it`; err.Error() != want {
		t.Errorf("\ngot  %v\nwant %s", err, want)
	}
}

func TestATypoInASelectionMayBeNearASet(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"gc,workload": `unknown controller "workload"; did you mean "workloads"?`,
		"fulll":       `unknown controller "fulll"; did you mean "full"?`,
		"namespce,gc": `unknown controller "namespce"; did you mean "namespace-controller"?`,
		"rs":          "choose one of: workloads, full, ",
		"api":         "choose one of: workloads, full, ",
	} {
		if _, err := Parse(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", value, err, want)
		}
	}
}

func TestProfilesAreClosedUnderWhatTheyNeed(t *testing.T) {
	t.Parallel()
	for _, p := range Profiles() {
		for _, n := range needs {
			if p.Has(n.name) && !p.Has(n.needs) {
				t.Errorf("%s runs %s without %s", p.Name, n.name, n.needs)
			}
		}
	}
}

func TestNeedsNameWhatUpstreamHas(t *testing.T) {
	t.Parallel()
	known := append(app.KnownControllers(), Scheduler)
	for _, n := range needs {
		if !slices.Contains(known, n.name) || !slices.Contains(known, n.needs) {
			t.Errorf("%s needs %s, but upstream does not have both controllers", n.name, n.needs)
		}
	}
}

func TestTheManagerRunsExactlyTheProfile(t *testing.T) {
	t.Parallel()
	tests := []struct {
		names   []string
		manager bool
		flags   []string
	}{
		{nil, false, nil},
		{[]string{Scheduler}, false, nil},
		{[]string{Scheduler, "job-controller"}, true, []string{"--controllers=job-controller"}},
		{[]string{"serviceaccount-token-controller"}, true, []string{"--service-account-private-key-file=sa.key", "--controllers=serviceaccount-token-controller"}},
	}
	for _, test := range tests {
		p := Profile{Controllers: test.names}
		if got := p.RunsManager(); got != test.manager {
			t.Errorf("%q: RunsManager() = %t, want %t", test.names, got, test.manager)
		}
		got := slices.DeleteFunc(ManagerConfig{Profile: p, TokenKeyFile: "sa.key"}.flags(), func(flag string) bool {
			return !strings.HasPrefix(flag, "--controllers=") && !strings.HasPrefix(flag, "--service-account-private-key-file=")
		})
		if !slices.Equal(got, test.flags) {
			t.Errorf("%q: flags %q, want %q", test.names, got, test.flags)
		}
	}
}

func FuzzSelect(f *testing.F) {
	for _, seed := range []string{"*", "-deployment", "gc,-gc", "+", "-", "--", "-+job", "deploymnt", "\xff,*", ",,"} {
		f.Add(seed)
	}
	known := append(app.KnownControllers(), Scheduler)
	f.Fuzz(func(t *testing.T, changes string) {
		got, err := profile(t, "gc").Select(strings.Split(changes, ","))
		if err != nil {
			var unknown *UnknownError
			if !errors.As(err, &unknown) {
				t.Errorf("%v is not an *UnknownError", err)
			}
			return
		}
		if !slices.IsSorted(got.Controllers) {
			t.Errorf("not sorted: %q", got.Controllers)
		}
		for i, name := range got.Controllers {
			if !slices.Contains(known, name) || i > 0 && got.Controllers[i-1] == name {
				t.Errorf("%q is not canonical, or is listed twice", name)
			}
		}
	})
}

func profile(t *testing.T, name string) Profile {
	t.Helper()
	p, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
