package markers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/ship/olm"
	"github.com/koboshi-dev/koboshi/internal/ship/olm/markers"
)

// code is a project that uses everything that operator-sdk's documentation of markers shows.
const code = `
-- go.mod --
module example.com/sea

go 1.26
-- api/v1/doc.go --
// +groupName=sea.example.com
package v1
-- api/v1/types.go --
package v1

import shared "example.com/sea/api/common"

// Boat carries people.
// +operator-sdk:csv:customresourcedefinitions:displayName="A boat",resources={{Pod,v1,runner},{Deployment,v1,"a-b"},{Service,v1}},order=2
type Boat struct {
	Spec   BoatSpec   ` + "`json:\"spec,omitempty\"`" + `
	Status BoatStatus ` + "`json:\"status,omitempty\"`" + `
}

type BoatSpec struct {
	// Sails is the number of sails.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Number of sails",xDescriptors={"urn:a","urn:b"}
	Sails int ` + "`json:\"sails\"`" + `
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=1
	ShipName string ` + "`json:\"shipName\"`" + `
	Unmarked string ` + "`json:\"unmarked\"`" + `
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Hidden string ` + "`json:\"-\"`" + `
	// +operator-sdk:csv:customresourcedefinitions:type=status
	Wrong string ` + "`json:\"wrong\"`" + `
	Inner  ` + "`json:\",inline\"`" + `
	Crew []*shared.Sailor ` + "`json:\"crew\"`" + `
	ByName map[string]shared.Sailor ` + "`json:\"byName\"`" + `
	Fleet Boats ` + "`json:\"fleet\"`" + `
}

type Boats []BoatSpec // contains itself

type Inner struct {
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	// +operator-sdk:csv:customresourcedefinitions:type=status
	Both int ` + "`json:\"both\"`" + `
}

type BoatStatus struct {
	// +operator-sdk:csv:customresourcedefinitions:type=status,displayName="State",xDescriptors="urn:alm:descriptor:text"
	State string ` + "`json:\"state\"`" + `
	Inner Inner ` + "`json:\"inner\"`" + `
}

// Plain has no marker.
type Plain struct {
	Spec Inner ` + "`json:\"spec\"`" + `
}
-- api/common/types.go --
package common

type Sailor struct {
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	FullName string ` + "`json:\"fullName\"`" + `
}
`

// project writes files to a new folder.
func project(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		at := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMarkersDescribeTypesAndFields(t *testing.T) {
	got, err := markers.Read(t.Context(), project(t, code))
	if err != nil {
		t.Fatal(err)
	}
	group := schema.GroupVersion{Group: "sea.example.com", Version: "v1"}
	both := olm.Descriptor{Path: "both", DisplayName: "Both", Order: olm.Last}
	inner := both
	inner.Path = "inner.both"
	want := []olm.Definition{{
		Kind: group.WithKind("Boat"), DisplayName: "A boat", Order: 2,
		Resources: []olm.Resource{{Kind: "Service", Version: "v1"}, {Kind: "Deployment", Version: "v1", Name: "a-b"}, {Kind: "Pod", Version: "v1", Name: "runner"}},
		Spec: []olm.Descriptor{
			{Path: "shipName", DisplayName: "Ship Name", Order: 1},
			both,
			{Path: "byName.fullName", DisplayName: "Full Name", Order: olm.Last},
			{Path: "crew[0].fullName", DisplayName: "Full Name", Order: olm.Last},
			{Path: "sails", DisplayName: "Number of sails", Description: "Sails is the number of sails.", XDescriptors: []string{"urn:a", "urn:b"}, Order: olm.Last},
		},
		Status: []olm.Descriptor{inner, {Path: "state", DisplayName: "State", XDescriptors: []string{"urn:alm:descriptor:text"}, Order: olm.Last}},
	}, {
		Kind: group.WithKind("Plain"), Order: olm.Last, Spec: []olm.Descriptor{both},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAProjectWithoutMarkersNeedsNoGoCommand(t *testing.T) {
	t.Setenv("PATH", "")
	for name, text := range map[string]string{
		"no types":   "-- go.mod --\nmodule example.com/sea\n",
		"no markers": "-- api/v1/types.go --\npackage v1\n\n// +operator-sdk:other\ntype Boat struct{}\n",
	} {
		if got, err := markers.Read(t.Context(), project(t, text)); len(got) > 0 || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestAWrongMarkerIsAnErrorWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"an unknown field":            {"displayName=\"A boat\"", "name=\"A boat\"", "types.go:6:1: unknown argument"},
		"a resource with a kind only": {"{Service,v1}", "{Service}", "the type Boat"},
	} {
		_, err := markers.Read(t.Context(), project(t, strings.Replace(code, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
