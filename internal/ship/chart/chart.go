// Package chart makes a Helm chart from the objects that install an operator.
//
//	objects ──naming──▶ names of the release ──features──▶ templates and values ─┬─▶ files
//	                                                        the person's files ──┘
//
// A chart is pure output: the same objects and files give the same chart, and a release that is
// called like the chart gets the objects themselves, apart from what the chart's README says.
package chart

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Options describe the operator that the chart installs, and the changes that a person makes to the chart.
type Options struct {
	// Project is the name of the chart if the names of the objects have no common prefix.
	Project string
	// Image is the image of the manager, as the objects name it.
	Image string
	// Entrypoint is the path of the manager in the image.
	Entrypoint string
	// Tag is the tag from which the chart gets its version.
	Tag string
	// WatchNamespaces is the flag, such as --namespaces, or the environment variable by which the
	// manager is told to watch only some namespaces; empty means that it cannot do that.
	WatchNamespaces string
	// Overlay maps paths in the chart to files of the person.
	Overlay map[string][]byte
}

// Chart is a chart as files.
type Chart struct {
	Name, Version string
	// Files maps paths in the chart's folder to their content.
	Files map[string][]byte
}

// Make makes a chart from objects, which stay as they are. One of them must run the manager.
func Make(objects []unstructured.Unstructured, o Options) (*Chart, error) {
	b, err := newBuilder(objects, o)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		b.addScope, b.addManager, b.addDisruptionBudget, b.addDefinitions, b.addCertificates, b.addMetrics, b.addNetworkPolicy, b.addLabels,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c := &Chart{Name: b.name, Version: Version(o.Tag), Files: map[string][]byte{}}
	if err := b.writeTemplates(c.Files); err != nil {
		return nil, err
	}
	if err := b.writeTexts(c); err != nil {
		return nil, err
	}
	if err := merge(c.Files, o.Overlay); err != nil {
		return nil, err
	}
	c.Files[valuesFile] = spaced(c.Files[valuesFile])
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// Made reports whether a Chart.yaml is that of a chart which Make has made.
func Made(chartYAML []byte) bool { return bytes.Contains(chartYAML, []byte("koboshi.dev/made-by:")) }

// Unversioned is the version of a chart if the tag of the image is not a semantic version, which
// Helm requires.
const Unversioned = "0.0.0"

// Version returns the version of a chart for the tag of an image, which is the tag without its v.
func Version(tag string) string {
	version := "v" + strings.TrimPrefix(tag, "v")
	numbers, _, _ := strings.Cut(version, "-")
	if !semver.IsValid(version) || strings.Count(numbers, ".") != 2 { // package semver accepts v1.2
		return Unversioned
	}
	return version[1:]
}

// A template is an object of the chart.
type template struct {
	object *unstructured.Unstructured
	// suffix is the name of the object without the prefix that the release replaces.
	suffix string
	// conditions of Helm's template language, which must all be true.
	conditions []string
	// each is the path of a list of namespaces, for each of which the object exists.
	each string
}

// only adds a condition.
func (t *template) only(condition string) { t.conditions = append(t.conditions, condition) }

func (t *template) is(group, kind string) bool {
	gvk := t.object.GroupVersionKind()
	return gvk.Group == group && (kind == "" || gvk.Kind == kind)
}

// builder is one call of Make.
type builder struct {
	Options
	*marks
	naming
	name string
	// image is the mark of the manager's image.
	image     string
	templates []*template
	manager   manager
	values    values
}

func newBuilder(objects []unstructured.Unstructured, o Options) (*builder, error) {
	all, err := yaml.Marshal(objects)
	if err != nil {
		return nil, fmt.Errorf("reading the objects: %w", err)
	}
	b := &builder{Options: o, marks: newMarks(string(all))}
	workload, err := findWorkload(objects, o)
	if err != nil {
		return nil, err
	}
	prefix := commonPrefix(objects, workload.GetName())
	b.name = chartName(cmp.Or(strings.TrimSuffix(prefix, "-"), o.Project))
	b.naming = newNaming(b.marks, b.name, prefix, workload.GetNamespace(), objects)
	b.image = b.value(fmt.Sprintf("include %q $", b.name+".image"))
	for i := range objects {
		if objects[i].GroupVersionKind().GroupKind() == namespaceKind && objects[i].GetName() == b.namespace {
			continue // Helm creates it, with --create-namespace
		}
		t := &template{object: objects[i].DeepCopy(), suffix: strings.TrimPrefix(objects[i].GetName(), prefix)}
		b.setImage(t.object.Object)
		b.rename(t.object.Object)
		b.templates = append(b.templates, t)
		if objects[i].GetKind() == workload.GetKind() && objects[i].GetName() == workload.GetName() {
			b.manager.template = t
		}
	}
	return b, b.readManager()
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// chartName turns the name of a project into one that Helm accepts.
func chartName(name string) string {
	return cmp.Or(strings.Trim(notInName.ReplaceAllString(strings.ToLower(name), "-"), "-"), "operator")
}

// find returns the templates of a kind.
func (b *builder) find(group, kind string) (found []*template) {
	for _, t := range b.templates {
		if t.is(group, kind) {
			found = append(found, t)
		}
	}
	return found
}

// addLabels sets the labels by which Helm's users find the objects of a release.
func (b *builder) addLabels() error {
	for _, t := range b.templates {
		labels := t.object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["app.kubernetes.io/name"] = cmp.Or(labels["app.kubernetes.io/name"], b.name)
		labels["app.kubernetes.io/managed-by"] = b.quoted("$.Release.Service")
		labels["app.kubernetes.io/instance"] = b.quoted("$.Release.Name")
		labels["helm.sh/chart"] = b.value(fmt.Sprintf("include %q $", b.name+".chart"))
		t.object.SetLabels(labels)
	}
	return nil
}

// writeTemplates adds a file for each object.
func (b *builder) writeTemplates(files map[string][]byte) error {
	for _, t := range b.templates {
		text, err := b.text(t.object.Object)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", t.object.GetKind(), t.suffix, err)
		}
		if t.each != "" {
			text = "{{- range .Values." + t.each + " }}\n---\n" + text + "{{- end }}\n"
		}
		switch len(t.conditions) {
		case 0:
		case 1:
			text = guarded(t.conditions[0], text)
		default:
			text = guarded("and ("+strings.Join(t.conditions, ") (")+")", text)
		}
		files[b.file(t, files)] = []byte(text)
	}
	return nil
}

// file returns a name for the file of an object that no other file has.
func (b *builder) file(t *template, files map[string][]byte) string {
	kind := strings.ToLower(t.object.GetKind())
	if t.is(definitionKind.Group, definitionKind.Kind) {
		kind = "crd"
	}
	base := "templates/" + kind + "-" + strings.Trim(notInFile.ReplaceAllString(t.suffix, "-"), "-")
	name := base + ".yaml"
	for i := 2; files[name] != nil; i++ {
		name = fmt.Sprintf("%s-%d.yaml", base, i)
	}
	return name
}

var notInFile = regexp.MustCompile(`[^a-z0-9.]+`)

// Paths returns the paths of the chart's files in order.
func (c *Chart) Paths() []string {
	return slices.Sorted(maps.Keys(c.Files))
}
