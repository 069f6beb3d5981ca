package merge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestItemsAreAddedToTheListsOfAPerson(t *testing.T) {
	const base = `resources:
- bases/a.yaml
# +kubebuilder:scaffold:crdkustomizeresource
`
	const theirs = `resources:
- bases/a.yaml
- bases/b.yaml
# +kubebuilder:scaffold:crdkustomizeresource

patches:
- path: patches/webhook_in_b.yaml
  target:
    kind: Deployment
`
	for name, c := range map[string]struct{ ours, want string }{
		"other items, indentation and comments": {
			"# Mine.\nresources:\n  - own.yaml # keep\n  - bases/a.yaml\n  # +kubebuilder:scaffold:crdkustomizeresource\nlabels: {}\n",
			"# Mine.\nresources:\n  - own.yaml # keep\n  - bases/a.yaml\n  - bases/b.yaml\n  # +kubebuilder:scaffold:crdkustomizeresource\nlabels: {}\npatches:\n- path: patches/webhook_in_b.yaml\n  target:\n    kind: Deployment\n",
		},
		"a list on one line": {
			"resources: [own.yaml]\npatches:\n- path: own.yaml\n",
			"resources:\n- own.yaml\n- bases/b.yaml\npatches:\n- path: own.yaml\n- path: patches/webhook_in_b.yaml\n  target:\n    kind: Deployment\n",
		},
		"an empty list": {
			"resources:\npatches: []\n",
			"resources:\n- bases/b.yaml\npatches:\n- path: patches/webhook_in_b.yaml\n  target:\n    kind: Deployment\n",
		},
		"an item that ends with a block": {
			"patches:\n- patch: |-\n    - op: remove\n      path: /a\n  target:\n    kind: Service\n- target: {kind: Pod}\n  patch: |\n    one\n\n    two\n\nresources:\n- x\n",
			"patches:\n- patch: |-\n    - op: remove\n      path: /a\n  target:\n    kind: Service\n- target: {kind: Pod}\n  patch: |\n    one\n\n    two\n- path: patches/webhook_in_b.yaml\n  target:\n    kind: Deployment\n\nresources:\n- x\n- bases/b.yaml\n",
		},
		"the items exist": {
			"resources:\n- bases/b.yaml\npatches:\n- {path: patches/webhook_in_b.yaml, target: {kind: Deployment}}\n",
			"resources:\n- bases/b.yaml\npatches:\n- {path: patches/webhook_in_b.yaml, target: {kind: Deployment}}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			merged, conflicts := apply(t, "kustomization.yaml", base, c.ours, theirs)
			if diff := cmp.Diff(c.want, merged); diff != "" || len(conflicts) > 0 {
				t.Errorf("%v\n%s", conflicts, diff)
			}
		})
	}
}

func TestItemsAreRemovedFromTheListsOfAPerson(t *testing.T) {
	const base = "resources:\n- bases/a.yaml\n- bases/b.yaml\npatches:\n- path: p.yaml\n"
	const theirs = "resources:\n- bases/a.yaml\n"
	const ours = "resources:\n# Bees.\n- bases/b.yaml\n- own.yaml\npatches:\n# Peas.\n- path: p.yaml\n- path: own.yaml\n"
	const want = "resources:\n- own.yaml\npatches:\n- path: own.yaml\n"
	merged, conflicts := apply(t, "kustomization.yaml", base, ours, theirs)
	if diff := cmp.Diff(want, merged); diff != "" || len(conflicts) > 0 {
		t.Errorf("%v\n%s", conflicts, diff)
	}
}

func TestOtherChangesOfYAMLAreMergedByLines(t *testing.T) {
	merged, conflicts := apply(t, "a.yaml", "a: 1\nb: 1\nc: 1\n", "a: 2\nb: 1\nc: 1\n", "a: 1\nb: 1\nc: 3\n")
	if want := "a: 2\nb: 1\nc: 3\n"; merged != want || len(conflicts) > 0 {
		t.Errorf("merged %q with %v, want %q", merged, conflicts, want)
	}
}

func FuzzYAML(f *testing.F) {
	f.Add("a:\n- 1\n", "a: [2]\n", "a:\n- 1\n- 2\n")
	f.Add("", "a:\n", "a:\n- b: |\n    c\n")
	f.Add("a: &x [1]\n", "b: *x\n", "a:\n- 1\n# c\n")
	f.Fuzz(func(_ *testing.T, base, ours, theirs string) {
		_, _ = File("a.yaml", []byte(base), []byte(ours), []byte(theirs))
	})
}
