// Package validation_test validates the bundles that koboshi ship --olm makes with the library by which
// operator-sdk bundle validate and the catalogs on the web judge bundles.
package validation_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/ship/install"
	"github.com/koboshi-dev/koboshi/internal/ship/olm"
)

// bundle writes the bundle of one of our operators to a new folder.
func bundle(t *testing.T, operator string) (dir string) {
	t.Helper()
	p, err := project.Load(t.Context(), project.Options{Dir: filepath.Join("..", "..", "..", "..", "operators", operator)})
	if err != nil {
		t.Fatal(err)
	}
	o := olm.Options{
		Package: p.Name, Version: "1.2.0", Image: "registry.example.com/" + operator + "@sha256:" + strings.Repeat("0", 64),
		Repository: "https://github.com/koboshi-dev/koboshi", Platforms: []string{"linux/amd64"}, Channels: []string{"stable"}, Created: time.Unix(0, 0),
	}
	if o.Objects, _, err = p.Installation(); err != nil {
		t.Fatal(err)
	}
	container, _ := p.Container()
	install.SetImage(o.Objects, container.Image, o.Image)
	for _, s := range p.Samples {
		o.Samples = append(o.Samples, s.Objects...)
	}
	made, err := olm.Make(o)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for name, text := range made.Files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// expected matches warnings about what only people know, which belongs into a base.
var expected = regexp.MustCompile(`csv\.Spec\.Icon not specified|provided API should have an example annotation`)

func TestUpstreamsValidatorsAcceptTheBundles(t *testing.T) {
	for _, operator := range []string{"storagebucket", "markdownview", "foo"} {
		b, err := manifests.GetBundleFromDir(bundle(t, operator))
		if err != nil {
			t.Fatal(err)
		}
		if b.Package != operator || b.CSV.Name != operator+".v1.2.0" || len(b.Channels) != 1 || b.Channels[0] != "stable" {
			t.Errorf("%s: the package %s, %s, channels %q", operator, b.Package, b.CSV.Name, b.Channels)
		}
		all := []any{b, b.CSV}
		for _, crd := range b.V1CRDs {
			all = append(all, crd)
		}
		for _, o := range b.Objects {
			all = append(all, o)
		}
		for name, judge := range map[string]validator.Validator{
			"bundle": validation.BundleValidator, "csv": validation.ClusterServiceVersionValidator, "crd": validation.CustomResourceDefinitionValidator,
			"hub": validation.OperatorHubV2Validator, "capabilities": validation.StandardCapabilitiesValidator, "categories": validation.StandardCategoriesValidator,
			"objects": validation.ObjectValidator, "good practices": validation.GoodPracticesValidator,
		} {
			for _, result := range judge.Validate(all...) {
				for _, problem := range append(result.Errors, result.Warnings...) {
					if !expected.MatchString(problem.Error()) {
						t.Errorf("%s, %s: %v", operator, name, problem)
					}
				}
			}
		}
	}
}

// The validators ignore fields that they do not know.
func TestAllFieldsOfAClusterServiceVersionExist(t *testing.T) {
	for _, operator := range []string{"storagebucket", "markdownview", "foo"} {
		text, err := os.ReadFile(filepath.Join(bundle(t, operator), olm.Manifests, operator+".clusterserviceversion.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, &v1alpha1.ClusterServiceVersion{}); err != nil {
			t.Errorf("%s: %v", operator, err)
		}
	}
}

func TestABrokenBundleIsNotAccepted(t *testing.T) {
	dir := bundle(t, "foo")
	crd := filepath.Join(dir, olm.Manifests, "sample.koboshi.dev_foos.yaml")
	if err := os.Remove(crd); err != nil {
		t.Fatal(err)
	}
	b, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if results := validation.BundleValidator.Validate(b); len(results) != 1 || len(results[0].Errors) == 0 {
		t.Errorf("a bundle without its CRD has no error: %+v", results)
	}
}
