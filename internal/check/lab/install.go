package lab

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// installTimeout limits how long the API server may take to serve a new kind. On a loaded
// machine, several large schemas at once take more than 20 seconds.
const installTimeout = 2 * time.Minute

// install creates the subject's objects in the cluster.
func (l *Lab) install(ctx context.Context) error {
	objects := l.config.Subject.Install
	if l.config.Subject.Webhook.Port > 0 {
		l.certs = filepath.Join(l.config.Dir, "certs")
		base := fmt.Sprintf("https://%s:%d", l.address(0), l.config.Subject.Webhook.Port)
		ca, err := subject.Certificates(l.certDir(), l.addresses(), []string{"localhost"})
		if err != nil {
			return err
		}
		objects = subject.PointWebhooks(objects, base, ca)
		defer func() { l.config.Subject.Webhooks = subject.PointWebhooks(l.config.Subject.Webhooks, base, ca) }()
	}
	return l.createAll(ctx, objects)
}

// createAll creates objects in order. It creates CRDs that follow each other before it waits
// for the first of them, because the API server works on all of them at the same time, and
// discovery is asked only once.
func (l *Lab) createAll(ctx context.Context, objects []unstructured.Unstructured) error {
	var crds []*unstructured.Unstructured
	for i := range objects {
		object := &objects[i]
		if !isDefinition(object) {
			if err := l.established(ctx, crds); err != nil {
				return err
			}
			crds = nil
		}
		if err := l.post(ctx, object); err != nil {
			return err
		}
		if isDefinition(object) {
			crds = append(crds, object)
		}
	}
	return l.established(ctx, crds)
}

func isDefinition(object *unstructured.Unstructured) bool {
	return object.GetKind() == "CustomResourceDefinition"
}

// certDir returns the folder in which the controller expects its certificate: l.certs, a
// folder below it, or a folder that a flag of the controller names.
func (l *Lab) certDir() string {
	return cmp.Or(l.config.Subject.Expand(map[string]string{subject.Certs: l.certs}).Webhook.CertDir, l.certs)
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
	for _, crd := range crds {
		if err := l.establishedOne(ctx, crd); err != nil {
			return err
		}
	}
	if len(crds) == 0 {
		return nil
	}
	l.mapper.Reset()
	for _, crd := range crds {
		if err := l.discovered(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

// discovered waits until discovery lists the kind of a CRD that is established. The API server
// updates the list of a group version a moment later, if another CRD has made it first.
func (l *Lab) discovered(ctx context.Context, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	var versions []string
	all, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range all {
		if version, _ := v.(map[string]any); version["served"] == true {
			name, _ := version["name"].(string)
			versions = append(versions, name)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, installTimeout, true, func(context.Context) (bool, error) {
		for _, version := range versions {
			_, err := l.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}, version)
			if meta.IsNoMatchError(err) {
				l.mapper.Reset()
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("installing CustomResourceDefinition %s: waiting until discovery lists it: %w", crd.GetName(), err)
	}
	return nil
}

func (l *Lab) establishedOne(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := l.resource(object)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, installTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return conditionTrue(now, "Established"), refusedNames(now)
	})
	if err != nil {
		return fmt.Errorf("installing CustomResourceDefinition %s: waiting for its condition Established: %w", object.GetName(), err)
	}
	return nil
}

func conditionTrue(object *unstructured.Unstructured, wanted string) bool {
	_, status := condition(object, wanted)
	return status == "True"
}

func refusedNames(object *unstructured.Unstructured) error {
	if message, status := condition(object, "NamesAccepted"); status == "False" {
		return fmt.Errorf("the API server rejected the names in the CRD: %s", message)
	}
	return nil
}

func condition(object *unstructured.Unstructured, wanted string) (message, status string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == wanted {
			message, _ = c["message"].(string)
			status, _ = c["status"].(string)
		}
	}
	return message, status
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
	account := l.config.Subject.Identity
	if account.Name == "" {
		l.identity = rest.CopyConfig(l.admin)
		return l.connectInProcess()
	}
	client, err := kubernetes.NewForConfig(l.admin)
	if err != nil {
		return err
	}
	seconds := int64(tokenLife.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	var token *authenticationv1.TokenRequest
	err = whenCreated(ctx, account.Name, func(ctx context.Context) (err error) {
		token, err = client.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, request, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating a token for the service account %s/%s: %w", account.Namespace, account.Name, err)
	}
	l.expires = token.Status.ExpirationTimestamp.Time
	l.identity = rest.AnonymousClientConfig(l.admin)
	l.identity.BearerToken = token.Status.Token
	l.identity.QPS = -1
	return l.connectInProcess()
}

// defaultAccount is the service account that a controller of Kubernetes creates in each
// namespace, some time after the namespace.
const defaultAccount = "default"

// whenCreated calls request for a service account, and repeats it while the default account
// of a new namespace does not exist yet. Any other account is part of the installation.
func whenCreated(ctx context.Context, account string, request func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, installTimeout, true, func(ctx context.Context) (bool, error) {
		last = request(ctx)
		if account == defaultAccount && apierrors.IsNotFound(last) {
			return false, nil
		}
		return true, last
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

// tokenLife is the lifetime of the token of the subject's service account. A check without
// a budget may take longer.
const tokenLife = 24 * time.Hour

// renew obtains a new token if the current one has passed half of its life. It is called
// before a run, because an instance keeps the identity with which it was started.
func (l *Lab) renew(ctx context.Context) error {
	if l.expires.IsZero() || time.Until(l.expires) > tokenLife/2 {
		return nil
	}
	return l.identify(ctx)
}

// connectInProcess lets the proxy pass the subject's requests to the server without a
// connection, since both are in this process.
func (l *Lab) connectInProcess() (err error) {
	l.identity.Transport, err = l.plane.InProcess(l.identity)
	return err
}

// addresses lists all addresses on which controllers of this lab may serve webhooks.
func (l *Lab) addresses() (all []net.IP) {
	for slot := range slots {
		all = append(all, l.address(slot).AsSlice())
	}
	return append(all, net.IPv4(127, 0, 0, 1))
}
