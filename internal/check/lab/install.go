package lab

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/served"
	"github.com/koboshi-dev/koboshi/internal/serviceaccount"
)

// install creates the subject's objects in the cluster.
func (l *Lab) install(ctx context.Context) error {
	if err := l.certify(); err != nil {
		return err
	}
	if err := l.createAll(ctx, l.pointed(0, 0).Install); err != nil {
		return err
	}
	l.present(ctx, 0)
	return nil
}

// certify writes the certificate for the webhooks.
func (l *Lab) certify() error {
	for slot := range slots {
		dir := l.certDir(slot)
		if l.subject(slot).Webhook.Port == 0 || slot > 0 && l.ca != nil && dir == l.certDir(0) {
			continue
		}
		ca, err := subject.Certificates(dir, l.addresses(), []string{"localhost"})
		if err != nil {
			return err
		}
		l.ca = append(l.ca, ca...)
	}
	return nil
}

// subject returns the version whose instances run in a slot.
func (l *Lab) subject(slot int) *subject.Subject {
	if slot == next && l.config.Next != nil {
		return l.config.Next
	}
	return &l.config.Subject
}

// pointed returns a version whose webhooks are served by the instances in another slot.
func (l *Lab) pointed(slot, server int) subject.Subject {
	s := *l.subject(slot)
	if l.subject(server).Webhook.Port > 0 {
		base := "https://" + l.webhookAddress(server)
		s.Install, s.Webhooks = subject.PointWebhooks(s.Install, base, l.ca), subject.PointWebhooks(s.Webhooks, base, l.ca)
	}
	return s
}

// webhookAddress returns the address at which the instances in a slot serve webhooks.
func (l *Lab) webhookAddress(slot int) string {
	return netip.AddrPortFrom(l.address(slot), uint16(l.subject(slot).Webhook.Port)).String()
}

// createAll creates objects in order. createAll creates consecutive CRDs before it waits for the
// first of them, because the API server works on all of them at the same time, and discovery is
// then requested only once.
func (l *Lab) createAll(ctx context.Context, objects []unstructured.Unstructured) error {
	var crds []*unstructured.Unstructured
	for i := range objects {
		object := &objects[i]
		if !served.IsCRD(object) {
			if err := l.established(ctx, crds); err != nil {
				return err
			}
			crds = nil
		}
		if err := l.post(ctx, object); err != nil {
			return err
		}
		if served.IsCRD(object) {
			crds = append(crds, object)
		}
	}
	return l.established(ctx, crds)
}

// certDir returns the folder in which the controller expects its certificate: l.certs, a
// folder below it, or a folder that a flag of the controller names.
func (l *Lab) certDir(slot int) string {
	return cmp.Or(l.subject(slot).Expand(map[string]string{subject.Certs: l.certs}).Webhook.CertDir, l.certs)
}

// create creates an object. For a CRD, it waits until the new kind is served.
func (l *Lab) create(ctx context.Context, object *unstructured.Unstructured) error {
	return l.createAll(ctx, []unstructured.Unstructured{*object})
}

// post creates an object, if it does not exist yet.
func (l *Lab) post(ctx context.Context, object *unstructured.Unstructured) error {
	name := fmt.Sprintf("%s %s", object.GetKind(), object.GetName())
	resource, err := l.resource(object)
	if err != nil {
		return fmt.Errorf("installing %s: %w", name, err)
	}
	_, err = resource.Create(ctx, object, metav1.CreateOptions{FieldManager: "koboshi-check"})
	if apierrors.IsAlreadyExists(err) { // such as a namespace that every cluster has
		return nil
	}
	if err != nil {
		return fmt.Errorf("installing %s: %w", name, err)
	}
	return nil
}

// established waits until the kinds of the CRDs are served.
func (l *Lab) established(ctx context.Context, crds []*unstructured.Unstructured) error {
	return served.Wait(ctx, l.client, l.mapper, crds)
}

// resource returns the client for an object's resource.
func (l *Lab) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	return l.otherClient().Resource(object)
}

// otherClient returns a client with the rights of an administrator.
func (l *Lab) otherClient() interference.Client {
	return interference.Client{Dynamic: l.client, Mapper: l.mapper}
}

// identify obtains the subject's credentials: a token of its service account, or the
// administrator's credentials.
func (l *Lab) identify(ctx context.Context) error {
	identity, expires, err := l.identityOf(ctx, l.config.Subject.Identity)
	if err != nil {
		return err
	}
	l.identity, l.expires = identity, expires
	return nil
}

// identityOf obtains the credentials of a service account, which expire if the time is not zero.
func (l *Lab) identityOf(ctx context.Context, account subject.ServiceAccount) (identity *rest.Config, expires time.Time, err error) {
	if account.Name == "" {
		identity = rest.CopyConfig(l.admin)
		return identity, expires, l.connectInProcess(identity)
	}
	client, err := kubernetes.NewForConfig(l.admin)
	if err != nil {
		return nil, expires, err
	}
	token, expires, err := serviceaccount.Token(ctx, client, account.Namespace, account.Name, tokenLife)
	if err != nil {
		return nil, expires, err
	}
	identity = rest.AnonymousClientConfig(l.admin)
	identity.BearerToken = token
	identity.QPS = -1
	return identity, expires, l.connectInProcess(identity)
}

// tokenLife is the lifetime of the token of the subject's service account. A check without a budget
// may outlast this token.
const tokenLife = 24 * time.Hour

// renew obtains a new token if the current one has passed half of its life. renew is called before
// a run, because an instance keeps the identity with which it was started.
func (l *Lab) renew(ctx context.Context) error {
	if l.expires.IsZero() || time.Until(l.expires) > tokenLife/2 {
		return nil
	}
	return l.identify(ctx)
}

// connectInProcess lets the proxy pass the subject's requests to the server without a
// connection, since both are in this process.
func (l *Lab) connectInProcess(identity *rest.Config) (err error) {
	identity.Transport, err = l.plane.InProcess(identity)
	return err
}

// addresses lists all addresses on which controllers of this lab may serve webhooks.
func (l *Lab) addresses() (all []net.IP) {
	for slot := range slots {
		all = append(all, l.address(slot).AsSlice())
	}
	return append(all, net.IPv4(127, 0, 0, 1))
}
