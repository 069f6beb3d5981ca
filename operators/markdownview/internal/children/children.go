// Package children builds the objects of a site, as typed apply configurations with exactly
// the fields that the operator owns. The package itself sends no requests.
//
// The fields that the API server returns must equal the applied fields. This package
// therefore omits the zero values that the API omits, and sets all keys of list items.
package children

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/content"
)

// Owner is the operator's field manager.
const Owner = "markdownview-controller"

// Labels of the children.
const (
	NameLabel     = "app.kubernetes.io/name"
	InstanceLabel = "app.kubernetes.io/instance"
	ManagerLabel  = "app.kubernetes.io/managed-by"
	// ContentLabel holds the hash of the files. ConfigMaps, viewers and the Service's
	// selector have this label.
	ContentLabel = "view.koboshi.dev/content"
	// TemplateLabel holds the hash of everything that defines a viewer: its content and
	// the way it is run. This label distinguishes old viewers from new ones.
	TemplateLabel = "view.koboshi.dev/template"
)

// Port is the name of the viewers' port in all objects.
const Port = "http"

// Options hold the operator's configuration.
type Options struct {
	// Image is the default image of viewers.
	Image string
	// Resources are the default resources of viewers.
	Resources corev1.ResourceRequirements
}

// Site is the input from which the children are made.
type Site struct {
	View *viewv1.MarkdownView
	// Title is the title of the site.
	Title string
	// Hash identifies the content, and Packs distribute it over ConfigMaps. Only the
	// ConfigMaps and the Pod template use Hash and Packs.
	Hash    string
	Packs   []content.Pack
	Options Options
}

// ViewerName returns the name of all children except the ConfigMaps.
func ViewerName(site string) string { return "viewer-" + site }

// ContentName returns the name of the nth ConfigMap with the content of this hash.
func ContentName(site, hash string, n int) string {
	return fmt.Sprintf("markdowns-%s-%s-%d", site, hash, n)
}

// Labels returns the labels that all children and Pods of a site have.
func Labels(site string) map[string]string {
	return map[string]string{NameLabel: "markdownview", InstanceLabel: site, ManagerLabel: Owner}
}

// Selector selects the children of a site.
func Selector(site string) labels.Selector { return labels.SelectorFromSet(Labels(site)) }

// Replicas returns the desired number of viewers.
func Replicas(view *viewv1.MarkdownView) int32 {
	switch {
	case view.Spec.Suspend:
		return 0
	case view.Spec.Replicas == nil:
		return 1
	default:
		return *view.Spec.Replicas
	}
}

// Engine returns the engine of a site. If the spec sets no engine, the name of the viewer
// image determines the engine.
func Engine(spec *viewv1.MarkdownViewSpec) viewv1.Engine {
	if spec.Engine != "" {
		return spec.Engine
	}
	image, _, _ := strings.Cut(spec.ViewerImage, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	if name == "mdbook" {
		return viewv1.EngineMdBook
	}
	return viewv1.EngineViewer
}

// Image returns the image of the viewers.
func Image(spec *viewv1.MarkdownViewSpec, o Options) string {
	if spec.ViewerImage != "" {
		return spec.ViewerImage
	}
	return o.Image
}

// BasePath returns the path below which the site is served, with a trailing slash.
// mdBook serves only at the root.
func BasePath(spec *viewv1.MarkdownViewSpec) string {
	if Engine(spec) == viewv1.EngineMdBook {
		return "/"
	}
	return strings.TrimSuffix(spec.BasePath, "/") + "/"
}

// URL returns the address of a site.
func URL(view *viewv1.MarkdownView) string {
	path := BasePath(&view.Spec)
	switch {
	case view.Spec.Ingress != nil && view.Spec.Ingress.TLSSecretName != "":
		return "https://" + view.Spec.Ingress.Host + path
	case view.Spec.Ingress != nil:
		return "http://" + view.Spec.Ingress.Host + path
	case view.Spec.HTTPRoute != nil && len(view.Spec.HTTPRoute.Hostnames) > 0:
		// The MarkdownView does not show whether the Gateway's listener uses TLS. A Gateway
		// whose listener uses TLS redirects readers to https.
		return "http://" + view.Spec.HTTPRoute.Hostnames[0] + path
	default:
		return fmt.Sprintf("http://%s.%s.svc%s", ViewerName(view.Name), view.Namespace, path)
	}
}

// meta sets the metadata that all children share.
func meta(m *metav1ac.ObjectMetaApplyConfiguration, view *viewv1.MarkdownView, annotations map[string]string) {
	m.Labels = Labels(view.Name)
	if len(annotations) > 0 {
		m.Annotations = maps.Clone(annotations)
	}
	m.OwnerReferences = []metav1ac.OwnerReferenceApplyConfiguration{*metav1ac.OwnerReference().
		WithAPIVersion(viewv1.GroupVersion.String()).WithKind("MarkdownView").
		WithName(view.Name).WithUID(view.UID).
		WithController(true).WithBlockOwnerDeletion(true)}
}

func selector(site string) *metav1ac.LabelSelectorApplyConfiguration {
	return metav1ac.LabelSelector().WithMatchLabels(Labels(site))
}

func labelSelector(s *metav1.LabelSelector) *metav1ac.LabelSelectorApplyConfiguration {
	if s == nil {
		return nil
	}
	out := metav1ac.LabelSelector()
	if len(s.MatchLabels) > 0 {
		out.WithMatchLabels(s.MatchLabels)
	}
	for _, e := range s.MatchExpressions {
		r := metav1ac.LabelSelectorRequirement().WithKey(e.Key).WithOperator(e.Operator)
		r.Values = slices.Clone(e.Values)
		out.WithMatchExpressions(r)
	}
	return out
}
