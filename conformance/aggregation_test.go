package conformance

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

const mirrorsGroup = "mirrors.example.com"

// aggregate starts a plane and an extension API server that serves one of the plane's API groups.
// The test has its own plane, because a plane deletes no namespaces while one API group does not
// answer, and other tests on the same plane would have to wait.
func aggregate(t *testing.T) (*plane, *endpoint) {
	t.Helper()
	p := startPlane(t, "--ephemeral", "--profile=api")
	server := serve(t, newExtension(t, p), "mirrors.default.svc")
	p.apply(t, manifest(t, "mirrors.yaml", values{
		"GROUP":     mirrorsGroup,
		"CA_BUNDLE": base64.StdEncoding.EncodeToString(server.caBundle),
		"PORT":      strconv.Itoa(server.port()),
	}))
	p.wantAvailable(t, "True", "Passed")
	// The plane's proxy learns of the condition from a watch, and answers 503 until then.
	eventually(t, "the extension is asked", func(ctx context.Context) error {
		_, err := p.mirror(ctx, rest.ImpersonationConfig{})
		return err
	})
	return p, server
}

// newExtension returns an extension that trusts the certificate authority and the names
// that the plane publishes for its front proxy.
func newExtension(t *testing.T, p *plane) *extension {
	t.Helper()
	x := &extension{group: mirrorsGroup, callers: x509.NewCertPool()}
	eventually(t, "the plane publishes the authority of its front proxy", func(ctx context.Context) error {
		c, err := p.client.CoreV1().ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !x.callers.AppendCertsFromPEM([]byte(c.Data["requestheader-client-ca-file"])) {
			return errors.New("the ConfigMap has no certificate")
		}
		return json.Unmarshal([]byte(c.Data["requestheader-allowed-names"]), &x.names)
	})
	return x
}

// wantAvailable waits for the condition Available of the APIService.
func (p *plane) wantAvailable(t *testing.T, status, reason string) {
	t.Helper()
	eventually(t, "the APIService is Available: "+status, func(ctx context.Context) error {
		o, err := p.dynamic.Resource(apiServices).Get(ctx, "v1."+mirrorsGroup, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			c := c.(map[string]any)
			if c["type"] == "Available" && c["status"] == status && c["reason"] == reason {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("conditions are %v", conditions))
	})
}

// checkNow makes the plane check the extension API server again. Without checkNow, the
// plane checks every 30 seconds, and after every change to the APIService.
func (p *plane) checkNow(t *testing.T) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/checked":"%s"}}}`, rand.String(8))
	if _, err := p.dynamic.Resource(apiServices).Patch(t.Context(), "v1."+mirrorsGroup, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// mirror reads, through the plane, which user the extension API server sees.
func (p *plane) mirror(ctx context.Context, as rest.ImpersonationConfig) (mirror, error) {
	var m mirror
	config := rest.CopyConfig(p.config)
	config.Impersonate = as
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return m, err
	}
	mirrors := schema.GroupVersionResource{Group: mirrorsGroup, Version: "v1", Resource: "mirrors"}
	o, err := client.Resource(mirrors).Get(ctx, "self", metav1.GetOptions{})
	if err != nil {
		return m, err
	}
	return m, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &m)
}

func TestAggregatedAPIBecomesAvailable(t *testing.T) {
	t.Parallel()
	aggregate(t)
}

func TestKubectlGetReturnsWhatExtensionServes(t *testing.T) {
	t.Parallel()
	p, _ := aggregate(t)
	eventually(t, "kubectl finds the resource", func(context.Context) error {
		out, err := p.tryKubectl("", "get", "mirrors", "-o", "name", "--cache-dir", t.TempDir())
		if want := "mirror." + mirrorsGroup + "/self"; err != nil || strings.TrimSpace(out) != want {
			return fmt.Errorf("%v: %q instead of %q", err, out, want)
		}
		return nil
	})
}

func TestExtensionSeesWhoAsks(t *testing.T) {
	t.Parallel()
	p, _ := aggregate(t)
	review, err := p.client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := review.Status.UserInfo
	got, err := p.mirror(t.Context(), rest.ImpersonationConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if got.User != want.Username || !slices.Equal(got.Groups, want.Groups) {
		t.Errorf("the extension sees %s of %v instead of %s of %v", got.User, got.Groups, want.Username, want.Groups)
	}
}

func TestExtensionSeesImpersonatedUser(t *testing.T) {
	t.Parallel()
	p, _ := aggregate(t)
	got, err := p.mirror(t.Context(), rest.ImpersonationConfig{UserName: "ann", Groups: []string{"staff", "system:masters"}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"staff", "system:masters", "system:authenticated"}; got.User != "ann" || !slices.Equal(got.Groups, want) {
		t.Errorf("the extension sees %s of %v instead of ann of %v", got.User, got.Groups, want)
	}
}

func TestPlaneAuthorizesRequestsToExtension(t *testing.T) {
	t.Parallel()
	p, _ := aggregate(t)
	ann := rest.ImpersonationConfig{UserName: "ann"}
	_, err := p.mirror(t.Context(), ann)
	wantForbidden(t, err, `User "ann" cannot get resource "mirrors"`)
	p.grantMirrors(t, "ann")
	eventually(t, "ann may ask", func(ctx context.Context) error {
		_, err := p.mirror(ctx, ann)
		return err
	})
}

// grantMirrors lets a user read mirrors.
func (p *plane) grantMirrors(t *testing.T, user string) {
	t.Helper()
	name := metav1.ObjectMeta{Name: "mirrors"}
	_, err := p.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: name,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{mirrorsGroup}, Resources: []string{"mirrors"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOutageOfExtensionLeavesOtherGroups(t *testing.T) {
	t.Parallel()
	p, server := aggregate(t)
	server.goDown()
	p.checkNow(t)
	p.wantAvailable(t, "False", "FailedDiscoveryCheck")
	eventually(t, "requests to the extension are answered by the plane", func(ctx context.Context) error {
		_, err := p.mirror(ctx, rest.ImpersonationConfig{})
		if !apierrors.IsServiceUnavailable(err) {
			return fmt.Errorf("not 503: %w", err)
		}
		return nil
	})
	_, lists, err := p.client.Discovery().ServerGroupsAndResources()
	if failed, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		delete(failed.Groups, schema.GroupVersion{Group: mirrorsGroup, Version: "v1"})
		if len(failed.Groups) == 0 {
			err = nil
		}
	}
	if err != nil {
		t.Errorf("discovery of other groups: %v", err)
	}
	if !slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == "apps/v1" }) {
		t.Error("discovery does not list apps/v1")
	}
}

func TestExtensionIsAvailableAgainAfterOutage(t *testing.T) {
	t.Parallel()
	p, server := aggregate(t)
	server.goDown()
	p.checkNow(t)
	p.wantAvailable(t, "False", "FailedDiscoveryCheck")
	server.comeBack()
	p.checkNow(t)
	p.wantAvailable(t, "True", "Passed")
	eventually(t, "the extension is asked again", func(ctx context.Context) error {
		_, err := p.mirror(ctx, rest.ImpersonationConfig{})
		return err
	})
}
