package permissions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edit writes a file with these markers, edits it, and returns its comments.
func edit(t *testing.T, markers string, change func(*Files)) (comments string, f *Files) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "controller.go")
	source := "package controller\n\n" + strings.TrimSpace(markers) + "\n\nfunc a() {}\n"
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	change(f)
	data, changed := f.Contents()[name]
	if !changed {
		data = []byte(source)
	}
	rest, _ := strings.CutPrefix(string(data), "package controller\n\n")
	rest, complete := strings.CutSuffix(rest, "\nfunc a() {}\n")
	if !complete {
		t.Errorf("the rest of the file has changed:\n%s", data)
	}
	return strings.TrimSpace(rest), f
}

func TestUnusedVerbsDisappearFromMarkers(t *testing.T) {
	unused := func(group, resource string, verbs ...string) (all []Permission) {
		for _, verb := range verbs {
			all = append(all, Permission{Verb: verb, Group: group, Resource: resource})
		}
		return all
	}
	for name, c := range map[string]struct {
		markers, want string
		unused, left  []Permission
	}{
		"one resource": {
			`// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;delete`,
			`// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch`,
			unused("apps", "deployments", "delete"), nil,
		},
		"all verbs": {
			"// +kubebuilder:rbac:groups=core,resources=nodes,verbs=delete\n// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get",
			`// +kubebuilder:rbac:groups="",resources=pods,verbs=get`,
			unused("", "nodes", "delete"), nil,
		},
		"some of several resources": {
			`//+kubebuilder:rbac:groups="",resources=pods;services;secrets,verbs="get";"delete"`,
			"//+kubebuilder:rbac:groups=\"\",resources=pods;secrets,verbs=get\n//+kubebuilder:rbac:groups=\"\",resources=services,verbs=\"get\";\"delete\"",
			append(unused("", "pods", "delete"), unused("", "secrets", "delete")...), nil,
		},
		"combinations that do not exist": {
			`// +kubebuilder:rbac:groups=apps;batch,resources=deployments;jobs,verbs={get,create}`,
			"// +kubebuilder:rbac:groups=apps,resources=deployments,verbs={get,create}\n// +kubebuilder:rbac:groups=batch,resources=jobs,verbs={get,create}",
			append(unused("apps", "jobs", "get", "create"), unused("batch", "deployments", "get", "create")...), nil,
		},
		"groups that stay together": {
			`// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch;delete`,
			`// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch`,
			append(unused("", "events", "delete"), unused("events.k8s.io", "events", "delete")...), nil,
		},
		"names and namespaces": {
			"// +kubebuilder:rbac:groups=\"\",resources=secrets,resourceNames=key,verbs=get;delete\n// +kubebuilder:rbac:groups=\"\",namespace=system,resources=secrets,verbs=get;delete",
			"// +kubebuilder:rbac:groups=\"\",resources=secrets,resourceNames=key,verbs=get\n// +kubebuilder:rbac:groups=\"\",namespace=system,resources=secrets,verbs=get;delete",
			unused("", "secrets", "delete"), nil,
		},
		"what no marker grants": {
			"// +kubebuilder:rbac:groups=apps,resources=*,verbs=*\n// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get,roleName=other",
			"// +kubebuilder:rbac:groups=apps,resources=*,verbs=*\n// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get,roleName=other",
			append(unused("apps", "deployments", "delete"), unused("", "pods", "get")...), append(unused("apps", "deployments", "delete"), unused("", "pods", "get")...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, f := edit(t, c.markers, func(f *Files) { f.Remove(c.unused) })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, p := range c.unused {
				if f.Had(p) == slices.Contains(c.left, p) {
					t.Errorf("a marker granted %s: %t", p, f.Had(p))
				}
			}
		})
	}
}

func TestMissingVerbsAppearInMarkers(t *testing.T) {
	for name, c := range map[string]struct {
		markers, want string
		missing       []Permission
	}{
		"in the marker of the resource": {
			`// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;delete`,
			`// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;patch;delete`,
			[]Permission{{Verb: "patch", Group: "apps", Resource: "deployments"}},
		},
		"in a new marker beside its group": {
			"// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get\n// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get",
			"// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get\n// +kubebuilder:rbac:groups=apps,resources=deployments/scale,verbs=get;update\n// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get",
			[]Permission{{Verb: "update", Group: "apps", Resource: "deployments/scale"}, {Verb: "get", Group: "apps", Resource: "deployments/scale"}},
		},
		"at the end, and a cache needs two verbs": {
			"// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=web,verbs=get",
			"// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=web,verbs=get\n// +kubebuilder:rbac:groups=\"\",resources=secrets,verbs=list;watch\n// +kubebuilder:rbac:urls=/metrics,verbs=get",
			[]Permission{{Verb: "watch", Resource: "secrets"}, {Verb: "get", Path: "/metrics"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, f := edit(t, c.markers, func(f *Files) {
				if err := f.Add(c.missing); err != nil {
					t.Error(err)
				}
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if f.Remove(c.missing); strings.Contains(string(f.Contents()[f.files[0].name]), "scale") {
				t.Error("what was added cannot be removed")
			}
		})
	}
}

func TestChangesNameTheLineInTheOldFile(t *testing.T) {
	_, f := edit(t, "// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get;delete\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get", func(f *Files) {
		f.Remove([]Permission{{Verb: "delete", Resource: "pods"}})
		if err := f.Add([]Permission{{Verb: "get", Group: "apps", Resource: "replicasets"}}); err != nil {
			t.Error(err)
		}
	})
	changes := f.Changes()
	for i := range changes {
		changes[i].File = ""
	}
	want := []Change{
		{Line: 3, Old: `// +kubebuilder:rbac:groups="",resources=pods,verbs=get;delete`, New: []string{`// +kubebuilder:rbac:groups="",resources=pods,verbs=get`}},
		{Line: 4, New: []string{`// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get`}},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAPermissionThatComesBackLeavesItsMarkerAsItWas(t *testing.T) {
	status := []Permission{{Verb: "patch", Group: "apps", Resource: "deployments/status"}}
	_, f := edit(t, "//+kubebuilder:rbac:groups=apps,resources=deployments/status,verbs=patch\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get", func(f *Files) {
		f.Remove(status)
		if err := f.Add(status); err != nil {
			t.Error(err)
		}
	})
	if len(f.Changes()) > 0 || len(f.Contents()) > 0 {
		t.Errorf("changed: %v", f.Changes())
	}
}

func TestFilesWithoutAPlaceForAMarkerAreRefused(t *testing.T) {
	f, err := Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Add([]Permission{{Verb: "get", Group: "apps", Resource: "deployments"}})
	if err == nil || !strings.Contains(err.Error(), "// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get") {
		t.Errorf("the error is %v, want one with the marker", err)
	}
	name := filepath.Join(t.TempDir(), "wrong.go")
	for source, want := range map[string]string{
		"package a\n// +kubebuilder:rbac:groups=apps,resources=deployments\n": "wrong.go:2: ",
		"package a\n// +kubebuilder:rbac:verbs=get\nfunc {\n":                 "wrong.go:3:6: ",
	} {
		if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one at %s", err, want)
		}
	}
}

func TestTheLineOfAMarkerIsThatOfThePermissionOrOfItsResource(t *testing.T) {
	name := filepath.Join(t.TempDir(), "controller.go")
	content := "package controller\n\n" +
		"// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=get\n" +
		"// +kubebuilder:rbac:groups=\"\",resources=pods,verbs=delete,namespace=system\n\nfunc f() {}\n"
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Read([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	for verb, want := range map[string]int{"get": 3, "delete": 4, "create": 3} {
		if file, line := f.Line(Permission{Verb: verb, Resource: "pods"}); file != name || line != want {
			t.Errorf("%s pods: %s:%d, want line %d", verb, file, line, want)
		}
	}
	if _, line := f.Line(Permission{Verb: "get", Resource: "nodes"}); line != 0 {
		t.Errorf("get nodes: line %d", line)
	}
}
