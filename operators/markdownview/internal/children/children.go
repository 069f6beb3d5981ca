// Package children says what each object of a site should be: as typed apply
// configurations that hold all that the operator wants to own, and no more. It
// is pure.
//
// Fields whose zero value the API leaves out are left out here as well, and
// keys of lists are given in full: what is read back as "applied by us" then
// equals what is applied.
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

// Owner is the name the operator applies fields under.
const Owner = "markdownview-controller"

// Labels of the children.
const (
	NameLabel     = "app.kubernetes.io/name"
	InstanceLabel = "app.kubernetes.io/instance"
	ManagerLabel  = "app.kubernetes.io/managed-by"
	// ContentLabel has the hash of the files, on ConfigMaps, viewers and in the
	// Service's selector.
	ContentLabel = "view.koboshi.dev/content"
	// TemplateLabel has the hash of all that a viewer is made of: its content and
	// how it is run. It tells an old viewer from a new one.
	TemplateLabel = "view.koboshi.dev/template"
)

// Port is what the viewers' port is called, everywhere.
const Port = "http"

// Options are what the operator is configured with.
type Options struct {
	// Image of a viewer, where the spec names none.
	Image string
	// Resources of a viewer, where the spec has none.
	Resources corev1.ResourceRequirements
}

// Site is what the children are made from.
type Site struct {
	View *viewv1.MarkdownView
	// Title of the site.
	Title string
	// Hash of the content, and how it is distributed over ConfigMaps. Both are
	// needed for the ConfigMaps and for the Pods' template only.
	Hash    string
	Packs   []content.Pack
	Options Options
}

// ViewerName is the name of all children of a site but its ConfigMaps.
func ViewerName(site string) string { return "viewer-" + site }

// ContentName is the name of the nth ConfigMap with a content.
func ContentName(site, hash string, n int) string {
	return fmt.Sprintf("markdowns-%s-%s-%d", site, hash, n)
}

// Labels are those of every child of a site, and of its Pods.
func Labels(site string) map[string]string {
	return map[string]string{NameLabel: "markdownview", InstanceLabel: site, ManagerLabel: Owner}
}

// Selector selects the children of a site.
func Selector(site string) labels.Selector { return labels.SelectorFromSet(Labels(site)) }

// Replicas is how many viewers there are to be.
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

// Engine is how a site's image is run.
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

// Image is the image of a site's viewers.
func Image(spec *viewv1.MarkdownViewSpec, o Options) string {
	if spec.ViewerImage != "" {
		return spec.ViewerImage
	}
	return o.Image
}

// BasePath is the path the site is served below, with a slash at its end. mdBook
// serves at the root only.
func BasePath(spec *viewv1.MarkdownViewSpec) string {
	if Engine(spec) == viewv1.EngineMdBook {
		return "/"
	}
	return strings.TrimSuffix(spec.BasePath, "/") + "/"
}

// URL is the address of a site.
func URL(view *viewv1.MarkdownView) string {
	path := BasePath(&view.Spec)
	switch {
	case view.Spec.Ingress != nil && view.Spec.Ingress.TLSSecretName != "":
		return "https://" + view.Spec.Ingress.Host + path
	case view.Spec.Ingress != nil:
		return "http://" + view.Spec.Ingress.Host + path
	case view.Spec.HTTPRoute != nil && len(view.Spec.HTTPRoute.Hostnames) > 0:
		// Whether the Gateway's listener speaks TLS is not known here. One that
		// does redirects.
		return "http://" + view.Spec.HTTPRoute.Hostnames[0] + path
	default:
		return fmt.Sprintf("http://%s.%s.svc%s", ViewerName(view.Name), view.Namespace, path)
	}
}

// meta fills in what all children have.
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
