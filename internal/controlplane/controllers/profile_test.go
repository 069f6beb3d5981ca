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
			t.Errorf("%s runs no more than %s", p.Name, before.Name)
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
			t.Errorf("%s runs upstream and not here", name)
		}
	}
	for _, name := range pointless {
		if !slices.Contains(app.KnownControllers(), name) {
			t.Errorf("%s is left out and upstream no longer has it", name)
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

// Upstream's rule: a name that is taken out stays out, "*" or not.
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
	for _, test := range []struct{ kind, name, nearest string }{
		{"profile", "ful", "full"},
		{"profile", "workload", "workloads"},
		{"profile", "API", ""},
		{"profile", "", ""},
		{"profile", "everything", ""},
		{"controller", "deploymnt", "deployment-controller"},
		{"controller", "-deploymnt", "deployment-controller"},
		{"controller", "statefullset", "statefulset-controller"},
		{"controller", "garbage-colector-controller", "garbage-collector-controller"},
		{"controller", "kube-schedular", Scheduler},
		{"controller", "", ""},
		{"controller", "-", ""},
		{"controller", "x", ""},
		{"controller", "-*", ""},
	} {
		var unknown *UnknownError
		if err := choose(test.kind, test.name); !errors.As(err, &unknown) {
			t.Errorf("%s %q: %v, want an *UnknownError", test.kind, test.name, err)
			continue
		}
		if unknown.Nearest != test.nearest || unknown.Kind != test.kind {
			t.Errorf("%s %q: nearest %s is %q, want %q", test.kind, test.name, unknown.Kind, unknown.Nearest, test.nearest)
		}
		next := "did you mean " // and without a near name, all that there are
		if test.nearest == "" {
			next = "choose one of: " + unknown.Known[0]
		}
		if got := unknown.Error(); !strings.Contains(got, next) || strings.Contains(got, "\n") {
			t.Errorf("%q does not say %q in one line", got, next)
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
				t.Errorf("%v is no *UnknownError", err)
			}
			return
		}
		if !slices.IsSorted(got.Controllers) {
			t.Errorf("not sorted: %q", got.Controllers)
		}
		for i, name := range got.Controllers {
			if !slices.Contains(known, name) || i > 0 && got.Controllers[i-1] == name {
				t.Errorf("%q is not canonical, or is there twice", name)
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
