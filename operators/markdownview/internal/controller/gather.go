package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/content"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/refs"
)

// wanted is the site that the spec describes.
type wanted struct {
	site     *children.Site
	template template
	pods     *corev1ac.PodTemplateSpecApplyConfiguration
	reading  reading
}

// observed is the existing state of the site.
type observed struct {
	// deployment and service are nil if the site has none.
	deployment *appsv1.Deployment
	service    *corev1.Service
	rollout    rollout
	// contents holds the content hash of each template.
	contents map[template]string
	// replicas is the number of viewers, of any template.
	replicas int32
	// foreign holds objects that have the name of a child but belong to other owners.
	foreign []refs.Ref
}

// gather reads the desired and the existing state, and records failed reads in the pass, so that
// the status explains them.
func (r *Reconciler) gather(ctx context.Context, p *pass) {
	err := r.want(ctx, p)
	var wrong *content.Error
	switch {
	case errors.As(err, &wrong):
		p.trouble(trouble{reason: wrong.Reason, message: wrong.Message, blocks: true})
	case err != nil:
		p.readFailed(err, true)
	}
	if err := r.observe(ctx, p, r.client); err != nil {
		p.readFailed(err, true)
		p.unobserved = true
	}
}

// want computes the desired site. A *content.Error means that the spec describes a site that cannot
// be made.
func (r *Reconciler) want(ctx context.Context, p *pass) error {
	spec := &p.view.Spec
	if image := children.Image(spec, r.options.Children); spec.ViewerImage != "" && !r.options.imageAllowed(image) {
		return &content.Error{Reason: viewv1.ReasonImageNotAllowed,
			Message: fmt.Sprintf("the operator does not allow viewerImage %q: use another image, or omit it", image)}
	}
	configMaps, err := r.configMaps(ctx, p.view)
	if err != nil {
		return err
	}
	files, err := content.Collect(spec, configMaps, r.options.ContentLimit)
	if err != nil {
		return err
	}
	hash := content.Hash(files)
	read := r.readings.of(client.ObjectKeyFromObject(p.view), children.Engine(spec), hash, files)
	if read.err != nil {
		return read.err
	}
	w := &wanted{reading: read, site: &children.Site{
		View: p.permitted, Title: title(p.view, read.title),
		Hash: hash, Packs: content.Packs(files), Options: r.options.Children,
	}}
	if w.pods, w.template, err = children.Template(w.site); err != nil {
		return err
	}
	p.wanted = w
	return nil
}

// configMaps reads the ConfigMaps to which the spec refers.
func (r *Reconciler) configMaps(ctx context.Context, view *viewv1.MarkdownView) (map[string]*corev1.ConfigMap, error) {
	names := content.Names(&view.Spec)
	all := make(map[string]*corev1.ConfigMap, len(names))
	for _, name := range names {
		cm := &corev1.ConfigMap{}
		err := r.reader.Get(ctx, types.NamespacedName{Namespace: view.Namespace, Name: name}, cm)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading the ConfigMap %q of contentFrom: %w", name, err)
		default:
			all[name] = cm
		}
	}
	return all, nil
}

// acceptable repeats checks of the webhook, because the webhook does not see the ConfigMaps
// and may be disabled.
func acceptable(b *book.Book, engine viewv1.Engine) error {
	for _, problem := range b.Problems {
		if problem.Fatal || problem.MdBook && engine == viewv1.EngineMdBook {
			return &content.Error{Reason: viewv1.ReasonContentInvalid,
				Message: fmt.Sprintf("%s:%d: %s", problem.Path, problem.Line, problem.Message)}
		}
	}
	if engine == viewv1.EngineMdBook && !b.HasSummary {
		return &content.Error{Reason: viewv1.ReasonContentInvalid, Message: "mdBook needs a SUMMARY.md: add one"}
	}
	return nil
}

func title(view *viewv1.MarkdownView, ofBook string) string {
	switch {
	case view.Spec.Title != "":
		return view.Spec.Title
	case ofBook != "":
		return ofBook
	default:
		return view.Name
	}
}

// observe reads the existing state of the site.
func (r *Reconciler) observe(ctx context.Context, p *pass, from client.Reader) error {
	p.observed = observed{contents: map[template]string{}, rollout: rollout{
		wanted: children.Replicas(p.view), viewers: map[template]viewers{},
	}}
	if p.wanted != nil {
		p.rollout.desired = p.wanted.template
		p.contents[p.wanted.template] = p.wanted.site.Hash
	}
	key := types.NamespacedName{Namespace: p.view.Namespace, Name: children.ViewerName(p.view.Name)}
	var err error
	if p.deployment, err = own(ctx, from, key, p.view, &appsv1.Deployment{}); err != nil {
		return err
	}
	if p.service, err = own(ctx, from, key, p.view, &corev1.Service{}); err != nil {
		return err
	}
	var sets appsv1.ReplicaSetList
	err = from.List(ctx, &sets, client.InNamespace(p.view.Namespace),
		client.MatchingLabelsSelector{Selector: children.Selector(p.view.Name)})
	if err != nil {
		return fmt.Errorf("listing the ReplicaSets: %w", err)
	}
	p.note(sets.Items)
	return nil
}

// own reads an object. It returns nil if the object does not exist or does not belong to
// the MarkdownView.
func own[O client.Object](ctx context.Context, from client.Reader, key types.NamespacedName, view *viewv1.MarkdownView, into O) (O, error) {
	var none O
	err := from.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %T: %w", into, err)
	}
	if !metav1.IsControlledBy(into, view) {
		return none, nil
	}
	return into, nil
}

// unlabelled stands for any template without the label children.TemplateLabel. This value never
// equals the desired template.
const unlabelled template = "unlabelled"

// note fills in the rollout from the observed objects.
func (p *pass) note(sets []appsv1.ReplicaSet) {
	if d := p.deployment; d != nil {
		labels := d.Spec.Template.Labels
		p.rollout.deployed = labels[children.TemplateLabel]
		if p.rollout.deployed == "" {
			p.rollout.deployed = unlabelled
		}
		p.rollout.held = d.Spec.MinReadySeconds >= children.Hold
		p.contents[p.rollout.deployed] = labels[children.ContentLabel]
	}
	if s := p.service; s != nil {
		p.rollout.selected = s.Spec.Selector[children.TemplateLabel]
		p.contents[p.rollout.selected] = s.Spec.Selector[children.ContentLabel]
	}
	for i := range sets {
		set := &sets[i]
		t := set.Labels[children.TemplateLabel]
		if t == "" {
			t = unlabelled
		}
		p.contents[t] = set.Labels[children.ContentLabel]
		v := p.rollout.viewers[t]
		v.pods += max(set.Status.Replicas, desiredOf(set))
		v.ready += set.Status.ReadyReplicas
		v.available += set.Status.AvailableReplicas
		p.rollout.viewers[t] = v
		p.replicas += set.Status.Replicas
	}
}

func desiredOf(set *appsv1.ReplicaSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}

// since returns the time of the operator's last change to the Deployment, or zero if there
// is no Deployment.
func (p *pass) since() time.Time {
	if p.deployment == nil {
		return time.Time{}
	}
	i := slices.IndexFunc(p.deployment.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == children.Owner && m.Operation == metav1.ManagedFieldsOperationApply
	})
	if i < 0 || p.deployment.ManagedFields[i].Time == nil {
		return p.deployment.CreationTimestamp.Time
	}
	return p.deployment.ManagedFields[i].Time.Time
}
