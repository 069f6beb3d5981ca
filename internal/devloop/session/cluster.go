package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/devloop/apply"
	"github.com/koboshi-dev/koboshi/internal/devloop/pause"
)

// Cluster is a cluster that exists already. A session changes only two things in it: it applies
// CRDs that are new or have been edited, and it scales the deployed manager to 0, and back at its
// end.
type Cluster struct {
	// Config is the connection of the user, with whose rights the manager runs.
	Config *rest.Config
	// Name describes the cluster to the user.
	Name string
	// Record is the file in which a paused manager is recorded. Kubeconfig and Context name the
	// cluster in it.
	Record, Kubeconfig, Context string
}

const (
	podsWithin    = time.Minute
	restoreWithin = 30 * time.Second
)

var crdResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// attach connects to the cluster.
func (s *Session) attach(ctx context.Context) error {
	s.admin = rest.CopyConfig(s.o.Cluster.Config)
	client, err := connect(s.admin)
	if err != nil {
		return err
	}
	s.installed, s.samples = apply.NewSet(client), apply.NewSet(client)
	s.installed.Keep()
	objects := s.objects(s.project)
	s.crds = crdsOf(objects)
	for i := range objects {
		if err := s.adopt(ctx, client, &objects[i]); err != nil {
			return fmt.Errorf("reading CustomResourceDefinition %s in the cluster %s: %w", objects[i].GetName(), s.o.Cluster.Name, err)
		}
	}
	return nil
}

// adopt leaves a CRD that already exists in the cluster unchanged until an edit changes it.
func (s *Session) adopt(ctx context.Context, client apply.Client, crd *unstructured.Unstructured) error {
	name := crd.GetName()
	at := client.Dynamic.Resource(crdResource)
	deployed, err := at.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		s.o.Observer.Note(fmt.Sprintf("the cluster has no CustomResourceDefinition %s, so it is installed", name))
		return nil
	case apierrors.IsForbidden(err):
		s.o.Observer.Note(fmt.Sprintf("you may not read CustomResourceDefinition %s in the cluster, so it is applied only if you change it here", name))
		return s.installed.Adopt(crd)
	case err != nil:
		return err
	}
	would, err := at.Apply(ctx, name, crd, metav1.ApplyOptions{FieldManager: "koboshi-dev", Force: true, DryRun: []string{metav1.DryRunAll}})
	switch {
	case err != nil:
		s.o.Observer.Note(fmt.Sprintf("CustomResourceDefinition %s cannot be applied: %v", name, err))
	case !reflect.DeepEqual(deployed.Object["spec"], would.Object["spec"]):
		s.o.Observer.Note(fmt.Sprintf("CustomResourceDefinition %s in the cluster differs from the one in this project; it stays as it is until you change it here, or apply it with kubectl", name))
	}
	return s.installed.Adopt(crd)
}

// deployed returns the cluster's copies of the CRDs, without those that the cluster does not have.
func (s *Session) deployed(ctx context.Context, these crds) (crds, error) {
	client, err := dynamic.NewForConfig(s.admin)
	if err != nil {
		return nil, err
	}
	found := crds{}
	for name := range these {
		crd, err := client.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		}
		found[name] = crd
	}
	return found, nil
}

// pause pauses the deployed manager before this session's manager starts for the first time.
func (s *Session) pause(ctx context.Context) error {
	if s.o.Cluster == nil || s.paused {
		return nil
	}
	if err := s.restore(ctx); err != nil { // what an earlier try of this session has left
		return err
	}
	client, err := dynamic.NewForConfig(s.admin)
	if err != nil {
		return err
	}
	r := &pause.Record{Kubeconfig: s.o.Cluster.Kubeconfig, Context: s.o.Cluster.Context, Server: s.admin.Host}
	r.Kind, r.Namespace, r.Name = s.project.Workload()
	if r.Kind == "" {
		s.paused = true
		s.o.Observer.Note("the project's manifests have no Deployment of the manager, so nothing is paused; if the cluster runs the manager, both work at the same time")
		return nil
	}
	s.pausing = r
	err = pause.Pause(ctx, client, s.o.Cluster.Record, r)
	switch {
	case errors.Is(err, pause.ErrNotFound):
		s.paused = true
		s.o.Observer.Note(fmt.Sprintf("the cluster has no %s, so nothing is paused", r.Workload))
		return nil
	case errors.Is(err, pause.ErrNotScalable):
		s.paused = true
		s.o.Observer.Note(fmt.Sprintf("%v, so it is not paused; if it runs in the cluster, both managers work at the same time", err))
		return nil
	case err != nil:
		return err
	}
	s.paused = true
	s.o.Observer.Note(fmt.Sprintf("%s is scaled to 0 until this session ends", r.Workload))
	if s.project.Subject.Webhook.Port > 0 {
		s.o.Observer.Note(fmt.Sprintf("the cluster's webhooks stay as they are; requests that call %s fail until it is restored", r.Workload))
	}
	return s.waitForPods(ctx, client, r.Workload)
}

// waitForPods waits until the deployed manager no longer runs.
func (s *Session) waitForPods(ctx context.Context, client dynamic.Interface, w pause.Workload) error {
	waiting, cancel := context.WithTimeout(ctx, podsWithin)
	defer cancel()
	if err := pause.WaitForPods(waiting, client, w); err != nil && ctx.Err() == nil {
		s.o.Observer.Note(fmt.Sprintf("not all Pods of %s may have ended: %v", w, err))
	}
	return ctx.Err()
}

// restore restores the manager that this session has paused. It does not need the file with the
// record, which somebody may have deleted.
func (s *Session) restore(ctx context.Context) error {
	if s.pausing == nil || s.pausing.Session == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreWithin)
	defer cancel()
	err := s.o.Cluster.Restore(ctx, s.pausing, s.o.Observer.Note)
	if err == nil {
		s.pausing, s.paused = nil, false
	}
	return err
}

// Restore restores the workload of a record.
func (c *Cluster) Restore(ctx context.Context, r *pause.Record, note func(string)) error {
	if r.Server != "" && r.Server != c.Config.Host {
		return fmt.Errorf("%s was paused in the cluster at %s, but the context %s now names the cluster at %s; correct the kubeconfig", r.Workload, r.Server, r.Context, c.Config.Host)
	}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	restored, err := pause.Restore(ctx, client, c.Record, r)
	if restored {
		note(fmt.Sprintf("%s is restored", r.Workload))
	}
	return err
}
