package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/devloop"
	"github.com/koboshi-dev/koboshi/internal/manifest/compat"
	"github.com/koboshi-dev/koboshi/internal/served"
)

// crds holds CRDs by their names.
type crds map[string]*unstructured.Unstructured

func crdsOf(objects []unstructured.Unstructured) crds {
	found := crds{}
	for i := range objects {
		if served.IsCRD(&objects[i]) {
			found[objects[i].GetName()] = &objects[i]
		}
	}
	return found
}

// except returns the CRDs that are missing from others, or differ there.
func (c crds) except(others crds) crds {
	changed := crds{}
	for name, crd := range c {
		if other, ok := others[name]; !ok || !reflect.DeepEqual(other.Object, crd.Object) {
			changed[name] = crd
		}
	}
	return changed
}

// mostDiff is the maximum number of lines of a difference that are shown.
const mostDiff = 40

// diff returns the difference between the CRDs and later ones, in lines of YAML.
func (c crds) diff(later crds) string {
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(later)) {
		was, existed := c[name]
		if !existed {
			continue
		}
		// Encoding does not fail, because these objects have been applied.
		before, _ := yaml.Marshal(was.Object)
		after, _ := yaml.Marshal(later[name].Object)
		text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: difflib.SplitLines(string(before)), B: difflib.SplitLines(string(after)), FromFile: name, ToFile: name, Context: 2,
		})
		all.WriteString(text)
	}
	lines := strings.SplitAfter(all.String(), "\n")
	if len(lines) <= mostDiff {
		return all.String()
	}
	return strings.Join(lines[:mostDiff], "") + fmt.Sprintf("(%d more lines)\n", len(lines)-mostDiff)
}

// errKept is the error of a round that was not allowed to lose stored data.
var errKept = errors.New("the CRDs stay as they were, and so does the manager; correct the code, or delete the objects that hold the data")

// allowed asks whether stored data may be lost, if applying the objects would lose any.
func (s *Session) allowed(ctx context.Context, objects []unstructured.Unstructured) error {
	losses, err := s.losses(ctx, crdsOf(objects))
	if err != nil || len(losses) == 0 {
		return err
	}
	asking, done := s.loop.UntilEdit(ctx) // the edit may take back what needs the question
	defer done()
	lose, err := s.o.Lose(asking, losses)
	switch {
	case errors.Is(context.Cause(asking), devloop.ErrStale):
		return devloop.ErrStale
	case err == nil && !lose:
		return errKept
	}
	return err
}

// losing lists the rules of package compat whose violation loses stored data.
var losing = []string{"crd-removed", "version-removed", "field-removed", "type-changed", "unknown-fields-pruned"}

// losses describes the stored data that would be lost with later CRDs.
func (s *Session) losses(ctx context.Context, later crds) ([]string, error) {
	before, err := s.crds, error(nil)
	if s.o.Cluster != nil {
		later = later.except(s.crds) // the others are not applied
		before, err = s.deployed(ctx, later)
	}
	if err != nil {
		return nil, err
	}
	in := compat.Input{}
	if in.Old, err = before.definitions(); err != nil {
		return nil, err
	}
	if in.New, err = later.definitions(); err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(s.admin)
	if err != nil {
		return nil, err
	}
	var losses []string
	for _, f := range compat.Compare(in) {
		if !slices.Contains(losing, f.Rule) {
			continue
		}
		stored, err := holders(ctx, client, in.Old, f)
		if err != nil {
			return nil, err
		}
		if len(stored) > 0 {
			what := strings.TrimPrefix(f.Field+": ", ": ")
			losses = append(losses, fmt.Sprintf("%s: %s%s (%s)", f.CRD, what, f.Message, firstOf(stored)))
		}
	}
	return losses, nil
}

func (c crds) definitions() (all []compat.Definition, err error) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c[name].Object, crd); err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		}
		all = append(all, compat.Definition{CRD: crd})
	}
	return all, nil
}

// storedVersion returns the version in which objects are stored.
func storedVersion(spec apiextensionsv1.CustomResourceDefinitionSpec) string {
	for _, v := range spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// holders returns the names of the stored objects that have data to which a finding applies.
func holders(ctx context.Context, client dynamic.Interface, old []compat.Definition, f compat.Finding) (names []string, err error) {
	at := slices.IndexFunc(old, func(d compat.Definition) bool { return d.CRD.Name == f.CRD })
	if at < 0 {
		return nil, nil
	}
	spec := old[at].CRD.Spec
	version := f.Version
	if spec.Conversion != nil && spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		stored := storedVersion(spec)
		if version != "" && version != stored {
			return nil, nil // nothing is stored in this version
		}
		version = stored // needs no conversion, which a manager that has crashed would not answer
	}
	if !slices.ContainsFunc(spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version && v.Served }) {
		version = ""
		for _, v := range spec.Versions {
			if v.Served && (version == "" || v.Storage) {
				version = v.Name
			}
		}
	}
	resource := schema.GroupVersionResource{Group: spec.Group, Version: version, Resource: spec.Names.Plural}
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for objects whose data would be lost: %w", err)
	}
	for i := range list.Items {
		if f.Field == "" || has(list.Items[i].Object, parts(f.Field)) {
			names = append(names, strings.TrimPrefix(list.Items[i].GetNamespace()+"/"+list.Items[i].GetName(), "/"))
		}
	}
	return names, nil
}

// parts splits the path of a field, such as spec.crew[*].name.
func parts(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' })
}

// has reports whether a value contains something at a path. Each part of the path is the name of a
// field, "*]" for the items of a list, or "key]" for the values of a map.
func has(value any, path []string) bool {
	if len(path) == 0 {
		return value != nil
	}
	switch value := value.(type) {
	case map[string]any:
		if path[0] == "key]" {
			return slices.ContainsFunc(slices.Collect(maps.Values(value)), func(v any) bool { return has(v, path[1:]) })
		}
		within, ok := value[path[0]]
		return ok && has(within, path[1:])
	case []any:
		return path[0] == "*]" && slices.ContainsFunc(value, func(v any) bool { return has(v, path[1:]) })
	}
	return false
}

// firstOf names the first objects.
func firstOf(names []string) string {
	const most = 3
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
