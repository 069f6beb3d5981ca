package manifest

import (
	"strings"
	"testing"
)

func TestTheGeneratorObjectReadsOnlyPackagesThatCopiedTypesReferTo(t *testing.T) {
	t.Parallel()
	dir := project(t, small+`-- api/time.go --
package api

import "time"

// +kubebuilder:object:generate=true
type Clock struct{ At time.Time }
-- controller/reconciler.go --
package controller

import "net/http"

type reconciler struct{ client *http.Client }
`)
	g := &generation{options: Options{Dir: dir, Args: []string{"object", "paths=./..."}}, store: newStore(), result: &Result{}}
	if err := g.plan(); err != nil {
		t.Fatal(err)
	}
	loads, err := g.generate(t.Context())
	if err != nil || len(g.result.Problems) > 0 || len(loads) != 1 {
		t.Fatalf("%d loads, problems %v, %v", len(loads), g.result.Problems, err)
	}
	read := map[string]bool{}
	for _, pkg := range everyPackage(loads[0].roots) {
		read[pkg.PkgPath] = pkg.Syntax != nil
	}
	for path, want := range map[string]bool{"example.com/small/controller": true, "time": true, "net/http": false} {
		if got, loaded := read[path]; !loaded || got != want {
			t.Errorf("package %s: loaded %t, read %t; want read %t", path, loaded, got, want)
		}
	}
}

// controller-gen knows the constant in package limits only because it has checked the types of the
// package named before, for which it writes nothing.
func TestWhatEarlierPackagesReferToIsKnownToLaterOnes(t *testing.T) {
	t.Parallel()
	dir := project(t, `-- go.mod --
module example.com/order

go 1.26
-- before/before.go --
package before

import "example.com/order/limits"

type Holder struct{ Limit limits.Limit }
-- copied/copied.go --
package copied

import "example.com/order/limits"

const most = limits.Most

// +kubebuilder:object:generate=true
type Copied struct{ Names [most]*string }
-- limits/limits.go --
package limits

const Most = 3

type Limit int
`)
	result, err := Generate(t.Context(), Options{Dir: dir, Args: []string{"object", "paths=./..."}})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Problems) != 1 || !strings.Contains(result.Problems[0].Message, "[3]*string") {
		t.Errorf("the problems are %v; want controller-gen's message about [3]*string", result.Problems)
	}
}
