package manifest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fleet is a project with the clients of two kinds, of which one has a method of its own and
// the other an irregular plural.
const fleet = `
-- PROJECT --
-- hack/boilerplate.go.txt --
// Copyright YEAR the fleet
-- Makefile --
APIS = $(patsubst %/,%,$(sort $(dir $(wildcard api/*/*_types.go))))
BIN =
OUT = pkg/clients
PKG = example.com/fleet/$(OUT)

manifests: generate
	controller-gen crd paths=./...

generate:
	controller-gen object paths=./api/...
	$(BIN)client-gen --go-header-file=hack/boilerplate.go.txt --input-base example.com/fleet $(addprefix --input=,$(APIS)) \
	  --clientset-name versioned --output-dir $(OUT)/clientset --output-pkg $(PKG)/clientset
	$(BIN)lister-gen -v 0 --go-header-file=hack/boilerplate.go.txt --output-dir $(OUT)/listers --output-pkg $(PKG)/listers $(addprefix ./,$(APIS))
	cd $(OUT) && $(BIN)informer-gen --go-header-file=../../hack/boilerplate.go.txt --output-dir informers --output-pkg $(PKG)/informers \
	  --versioned-clientset-package $(PKG)/clientset/versioned --listers-package $(PKG)/listers $(addprefix ../../,$(APIS))
-- api/v1/doc.go --
// Package v1 contains types.
//
// +groupName=sea.example.com
// +groupGoName=Sea
// +kubebuilder:object:generate=true
package v1
-- api/v1/ship_types.go --
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version.
var GroupVersion = schema.GroupVersion{Group: "sea.example.com", Version: "v1"}

// Ship is a ship.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Ship struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitzero\"`" + `
	Status ShipStatus ` + "`json:\"status,omitzero\"`" + `
}

// ShipStatus is the state of a ship.
type ShipStatus struct{}

// ShipList is a list of ships.
//
// +kubebuilder:object:root=true
type ShipList struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	metav1.ListMeta ` + "`json:\"metadata,omitzero\"`" + `
	Items []Ship    ` + "`json:\"items\"`" + `
}

// Person is a person.
//
// +genclient
// +genclient:nonNamespaced
// +resourceName=people
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=people,scope=Cluster
type Person struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitzero\"`" + `
}

// PersonList is a list of people.
//
// +kubebuilder:object:root=true
type PersonList struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	metav1.ListMeta ` + "`json:\"metadata,omitzero\"`" + `
	Items []Person  ` + "`json:\"items\"`" + `
}
-- internal/harbour/harbour.go --
// Package harbour uses clients that do not exist until they are generated.
package harbour

import "example.com/fleet/pkg/clients/listers/api/v1"

var _ v1.ShipLister
-- pkg/clients/clientset/versioned/clientset.go --
// Package versioned imports clients that have been deleted since it was generated.
package versioned

import _ "example.com/fleet/pkg/clients/clientset/versioned/typed/land/v1"
-- pkg/clients/clientset/versioned/typed/api/v1/ship_expansion.go --
package v1

// ShipExpansion lists the methods that a person has added.
type ShipExpansion interface{ Sail() }
`

func TestTheClientsAreThoseOfCodeGeneratorAndAreGeneratedOnlyAfterAChange(t *testing.T) {
	t.Parallel()
	theirs, ours := project(t, fleet), project(t, fleet)
	for _, dir := range []string{theirs, ours} {
		useModules(t, dir, "example.com/fleet")
	}
	bin := buildClientGenerators(t)
	cmd := exec.CommandContext(t.Context(), "make", "manifests", "generate", "BIN="+bin+"/")
	cmd.Dir = theirs
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(controllerGen(t))+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	options := Options{Dir: ours, Cache: t.TempDir()}
	result := generated(t, options)
	if len(result.Notes) > 0 || len(result.Files) < 25 {
		t.Errorf("%d files, notes %q", len(result.Files), result.Notes)
	}
	compareTrees(t, tree(t, theirs), tree(t, ours))

	if !generated(t, options).Cached {
		t.Error("everything was generated again, although nothing has changed")
	}
	write(t, filepath.Join(ours, "hack", "boilerplate.go.txt"), "// Copyright the crew\n")
	g := &generation{options: options, result: &Result{}}
	if err := g.plan(); err != nil {
		t.Fatal(err)
	}
	if _, ok := g.newCache().lookup(); ok {
		t.Error("nothing would be generated, although the header has changed")
	}
}

// buildClientGenerators returns the folder of the generators of k8s.io/code-generator in the
// version of go.mod.
func buildClientGenerators(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	args := []string{"build", "-o", bin}
	for program := range clientGenerators {
		args = append(args, clientsModule+"/cmd/"+program)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return bin
}

func TestAMistakeInACallOfCodeGeneratorHasItsLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"flag":    {"-v 0", "--colour red", "Makefile:13: lister-gen: unknown flag: --colour"},
		"header":  {"--go-header-file=hack/boilerplate.go.txt --input-base", "--go-header-file=hack/none.txt --input-base", "Makefile:11: client-gen: Failed loading boilerplate: open hack/none.txt"},
		"package": {"$(addprefix ./,$(APIS))", "./api/v2", "Makefile:13: lister-gen: "},
		"output":  {"--output-dir $(OUT)/listers", "", "Makefile:13: lister-gen: --output-dir must be specified"},
		"shell":   {"-v 0", "-v $$VERBOSE", "Makefile:13: the shell computes arguments of lister-gen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(fleet, c.old) {
				t.Fatalf("the Makefile does not contain %q", c.old)
			}
			alone := strings.NewReplacer("controller-gen crd", "@true", "controller-gen object", "@true", c.old, c.new)
			dir := project(t, alone.Replace(fleet))
			useModules(t, dir, "example.com/fleet")
			before := tree(t, dir)
			result, err := Generate(t.Context(), Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if len(result.Problems) != 1 || !strings.HasPrefix(result.Problems[0].String(), c.want) {
				t.Errorf("the problems are %v, want %q", result.Problems, c.want)
			}
			compareTrees(t, before, tree(t, dir))
		})
	}
}
