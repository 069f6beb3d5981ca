package deploy_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/deploy"
	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/inventory"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// within limits each deployment. On a loaded machine, everything is slow.
const within = 5 * time.Minute

// plane runs a real API server with controllers and simulated Pods, with the program that the
// environment variable KOBOSHI names.
func plane(t *testing.T) *rest.Config {
	t.Helper()
	program := os.Getenv("KOBOSHI")
	if program == "" {
		t.Skip("KOBOSHI does not name the koboshi program; build it, and set KOBOSHI to its absolute path")
	}
	dir := t.TempDir()
	readyFile, kubeconfig := filepath.Join(dir, "ready"), filepath.Join(dir, "kubeconfig")
	var output strings.Builder
	cmd := exec.Command(program, "up", "--profile", "workloads", "--ephemeral", "--die-with-parent", "--ready-file", readyFile, "--kubeconfig", kubeconfig)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-exited
	})
	for deadline := time.Now().Add(within); ; {
		if _, err := os.Stat(readyFile); err == nil {
			break
		}
		select {
		case <-exited:
			t.Fatalf("the plane has ended: %s", output.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the plane is not ready: %s", output.String())
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

const operator = `apiVersion: v1
kind: Namespace
metadata: {name: sea}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec: {type: object, required: [port], properties: {port: {type: string, minLength: 2}}}
---
apiVersion: sea.example.com/v1
kind: Ship
metadata: {name: first, namespace: sea}
spec: {port: Kobe}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: sea}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sea-manager}
rules: [{apiGroups: [sea.example.com], resources: [ships], verbs: ["*"]}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: sea}
spec:
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      serviceAccountName: manager
      containers: [{name: manager, image: "sea:v1"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: old, namespace: sea}
data: {version: "1"}
`

// update is a manifest for a newer version.
var update = strings.NewReplacer("name: old", "name: new", "sea:v1", "sea:v2").Replace(operator)

// broken is a manifest whose Pods fit on no node.
var broken = strings.NewReplacer("name: old", "name: newest", "serviceAccountName: manager", "nodeSelector: {none: such}").Replace(operator)

func parse(t *testing.T, manifest string) []unstructured.Unstructured {
	t.Helper()
	objects, err := order.Parse("manifest", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// observer keeps what was reported.
type observer struct {
	waits, notes []string
}

func (*observer) Done(deploy.Change) {}

func (o *observer) Note(text string) { o.notes = append(o.notes, text) }

func (o *observer) Waiting(pending []ready.Pending) {
	for _, p := range pending {
		o.waits = append(o.waits, p.String())
	}
}

func options(t *testing.T, config *rest.Config, manifest string) deploy.Options {
	t.Helper()
	c, err := cluster.Connect(config, "")
	if err != nil {
		t.Fatal(err)
	}
	return deploy.Options{Cluster: c, Objects: parse(t, manifest), Timeout: within, Rollback: true, Observer: &observer{}}
}

// deployed deploys a manifest, and returns what happened to each object.
func deployed(t *testing.T, config *rest.Config, manifest string) map[deploy.Action][]string {
	t.Helper()
	result, err := deploy.Run(t.Context(), options(t, config, manifest))
	if err != nil {
		t.Fatal(err)
	}
	return actions(result)
}

// previewed returns what a preview says, and its differences.
func previewed(t *testing.T, config *rest.Config, manifest string) (map[deploy.Action][]string, string) {
	t.Helper()
	var text strings.Builder
	result, err := deploy.Preview(t.Context(), options(t, config, manifest), func(diff string) error {
		text.WriteString(diff)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return actions(result), text.String()
}

func actions(r *deploy.Result) map[deploy.Action][]string {
	all := map[deploy.Action][]string{}
	for _, c := range r.Changes {
		all[c.Action] = append(all[c.Action], c.String())
	}
	return all
}

// kinds are those of which inCluster lists the objects.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "pods"},
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
}

// byItself reports whether a cluster makes an object by itself, which may happen at any time.
func byItself(u *unstructured.Unstructured) bool {
	return u.GetNamespace() == metav1.NamespaceSystem || u.GetName() == "kube-root-ca.crt" ||
		u.GetKind() == "ServiceAccount" && u.GetName() == "default" || u.GetKind() == "Namespace" && strings.HasPrefix(u.GetName(), "kube-")
}

// inCluster lists the objects in a cluster that it did not make by itself.
func inCluster(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	var all []string
	for _, kind := range kinds {
		list, err := c.Dynamic.Resource(kind).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range list.Items {
			if !byItself(&u) {
				all = append(all, cluster.IDOf(&u).String())
			}
		}
	}
	slices.Sort(all)
	return all
}

// limited returns a connection that cancels ctx after a number of requests that change something.
func limited(config *rest.Config, cancel context.CancelFunc, writes int) *rest.Config {
	config = rest.CopyConfig(config)
	var count atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet || strings.Contains(r.URL.RawQuery, "dryRun") {
				return next.RoundTrip(r)
			}
			if count.Add(1) > int64(writes) {
				cancel()
				return nil, context.Canceled
			}
			return next.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// interruptedAfter runs a call that is interrupted after a number of writes.
func interruptedAfter(t *testing.T, config *rest.Config, writes int, call func(context.Context, *rest.Config) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return call(ctx, limited(config, cancel, writes))
}

func TestRealPlaneGetsAnOperatorWhoseFirstDeploymentWasInterruptedAtAnyPoint(t *testing.T) {
	config := plane(t)
	for writes := 0; ; writes++ {
		fresh := strings.ReplaceAll(operator, "sea", fmt.Sprint("sea", writes))
		err := interruptedAfter(t, config, writes, func(ctx context.Context, config *rest.Config) error {
			_, err := deploy.Run(ctx, options(t, config, fresh))
			return err
		})
		if err == nil {
			if writes < 8 {
				t.Errorf("the deployment wrote only %d times", writes)
			}
			break
		}
		deployed(t, config, fresh)
		if again := deployed(t, config, fresh); len(again) != 1 || len(again[deploy.Unchanged]) != 7 {
			t.Errorf("after %d writes and a complete deployment, another one does this: %v", writes, again)
		}
	}
}

func TestRealPlaneGetsAndLosesAnOperator(t *testing.T) {
	config := plane(t)
	c, err := cluster.Connect(config, "")
	if err != nil {
		t.Fatal(err)
	}
	empty := inCluster(t, c)

	t.Run("a preview shows what would be created, and creates nothing", func(t *testing.T) {
		before := inCluster(t, c)
		got, diff := previewed(t, config, operator)
		if len(got) != 1 || len(got[deploy.Created]) != 7 || !strings.Contains(diff, "+++ Ship sea/first (deployed)") {
			t.Errorf("%v\n%s", got, diff)
		}
		if diff := cmp.Diff(before, inCluster(t, c)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a deployment creates everything", func(t *testing.T) {
		got := deployed(t, config, operator)
		want := map[deploy.Action][]string{deploy.Created: {
			"Namespace sea", "CustomResourceDefinition ships.sea.example.com", "ServiceAccount sea/manager", "ClusterRole sea-manager",
			"ConfigMap sea/old", "Deployment sea/manager", "Ship sea/first",
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if pods := running(t, c); pods != 1 {
			t.Errorf("%d Pods run after the deployment", pods)
		}
	})
	t.Run("the same deployment changes nothing", func(t *testing.T) {
		if got := deployed(t, config, operator); len(got) != 1 || len(got[deploy.Unchanged]) != 7 {
			t.Errorf("%v", got)
		}
	})
	t.Run("two deployments at the same time do not delete each other's objects", func(t *testing.T) {
		var both []*inventory.Inventory
		for range 2 {
			i, err := inventory.Read(t.Context(), c, "sea", "manager")
			if err != nil {
				t.Fatal(err)
			}
			both = append(both, i)
		}
		if err := both[0].Begin(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := both[1].Begin(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "at the same time") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a preview shows what an update changes, and changes nothing", func(t *testing.T) {
		before := inCluster(t, c)
		if got, diff := previewed(t, config, operator); len(got[deploy.Unchanged]) != 7 || diff != "" {
			t.Errorf("%v\n%s", got, diff)
		}
		got, diff := previewed(t, config, update)
		delete(got, deploy.Unchanged)
		want := map[deploy.Action][]string{
			deploy.Created: {"ConfigMap sea/new"}, deploy.Configured: {"Deployment sea/manager"}, deploy.Pruned: {"ConfigMap sea/old"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, line := range []string{"-      - image: sea:v1\n+      - image: sea:v2\n", "--- ConfigMap sea/old (live)\n+++ /dev/null\n", "--- /dev/null\n+++ ConfigMap sea/new (deployed)\n"} {
			if !strings.Contains(diff, line) {
				t.Errorf("%q is missing in\n%s", line, diff)
			}
		}
		if diff := cmp.Diff(before, inCluster(t, c)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an update deletes what it no longer has", func(t *testing.T) {
		got := deployed(t, config, update)
		delete(got, deploy.Unchanged)
		want := map[deploy.Action][]string{
			deploy.Created: {"ConfigMap sea/new"}, deploy.Configured: {"Deployment sea/manager"}, deploy.Pruned: {"ConfigMap sea/old"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a deployment that does not get ready returns to the previous one", func(t *testing.T) {
		o := options(t, config, broken)
		o.Timeout = 6 * time.Second
		result, err := deploy.Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "Deployment sea/manager: Pod manager-") || !strings.Contains(err.Error(), "Unschedulable") ||
			!strings.Contains(err.Error(), "the previous deployment was applied again, and works") {
			t.Fatalf("%v", err)
		}
		if pruned := actions(result)[deploy.Pruned]; !result.RolledBack || !slices.Equal(pruned, []string{"ConfigMap sea/newest"}) {
			t.Errorf("pruned %v", pruned)
		}
		if got := deployed(t, config, update); len(got[deploy.Unchanged]) != 7 {
			t.Errorf("the rollback has left something else than the previous deployment: %v", got)
		}
	})
	t.Run("a manifest without a CRD keeps it", func(t *testing.T) {
		got := deployed(t, config, without(update, "CustomResourceDefinition", "Ship"))
		if want := []string{"CustomResourceDefinition ships.sea.example.com"}; !slices.Equal(got[deploy.Kept], want) {
			t.Errorf("%v", got)
		}
	})
	t.Run("a refused object changes nothing", func(t *testing.T) {
		before := inCluster(t, c)
		for _, wrong := range [][2]string{{"app: manager", "app: else"}, {"kind: Deployment\n", "kind: Deployment\nspecs: {}\n"}} {
			manifest := strings.Replace(strings.Replace(update, "name: new", "name: other", 1), wrong[0], wrong[1], 1)
			_, err := deploy.Run(t.Context(), options(t, config, manifest))
			if err == nil || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "Deployment") {
				t.Errorf("%s: %v", wrong[1], err)
			}
		}
		if diff := cmp.Diff(before, inCluster(t, c)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a field of another manager is a conflict until it is forced", func(t *testing.T) {
		edited := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: new, namespace: sea}, data: {version: '2'}}")
		at, err := c.At(&edited[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := at.Apply(t.Context(), "new", &edited[0], metav1.ApplyOptions{FieldManager: "someone", Force: true}); err != nil {
			t.Fatal(err)
		}
		_, err = deploy.Run(t.Context(), options(t, config, update))
		if err == nil || !strings.Contains(err.Error(), `.data.version: conflict with "someone"`) || !strings.Contains(err.Error(), "--force-conflicts") {
			t.Errorf("%v", err)
		}
		o := options(t, config, update)
		o.Force = true
		if _, err := deploy.Run(t.Context(), o); err != nil {
			t.Error(err)
		}
	})
	t.Run("a deployment that was interrupted at any point is completed by the next one", func(t *testing.T) {
		changed := strings.ReplaceAll(operator, "sea:v1", "sea:v3")
		for writes := 0; ; writes++ {
			err := interruptedAfter(t, config, writes, func(ctx context.Context, config *rest.Config) error {
				_, err := deploy.Run(ctx, options(t, config, changed))
				return err
			})
			if err == nil {
				if writes < 8 {
					t.Errorf("the deployment wrote only %d times", writes)
				}
				break
			}
			if !strings.Contains(err.Error(), "run it again, and it continues") {
				t.Fatalf("after %d writes: %v", writes, err)
			}
		}
		if got := deployed(t, config, changed); len(got) != 1 || len(got[deploy.Unchanged]) != 7 {
			t.Errorf("%v", got)
		}
		maps := slices.DeleteFunc(inCluster(t, c), func(o string) bool { return !strings.HasPrefix(o, "ConfigMap sea/") })
		if want := []string{"ConfigMap sea/old"}; !slices.Equal(maps, want) {
			t.Errorf("%v", maps)
		}
	})
	t.Run("objects of a CRD are created when its webhook answers", func(t *testing.T) {
		calls, manifest := startWebhook(t, 3)
		o := options(t, config, manifest)
		o.Name = "lake"
		seen := &observer{}
		o.Observer = seen
		result, err := deploy.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		want := "MutatingWebhookConfiguration boats: Internal error occurred: failed calling webhook"
		if waits := strings.Join(seen.waits, "\n"); !strings.Contains(waits, want) || len(seen.notes) > 0 {
			t.Errorf("waited for %q, and noted %q", waits, seen.notes)
		}
		if n := len(result.Changes); calls.Load() < 5 || result.Changes[n-1].String() != "Boat lake/first" {
			t.Errorf("after %d calls: %v", calls.Load(), result.Changes)
		}
	})
	t.Run("what an interrupted deployment has installed is deleted by one without it", func(t *testing.T) {
		before := inCluster(t, c)
		for writes := 1; ; writes++ {
			err := interruptedAfter(t, config, writes, func(ctx context.Context, config *rest.Config) error {
				_, err := deploy.Run(ctx, options(t, config, operator+elsewhere))
				return err
			})
			deployed(t, config, operator)
			// The Pods have other names after each change of the image.
			if diff := cmp.Diff(withoutPods(before), withoutPods(inCluster(t, c))); diff != "" {
				t.Fatalf("after %d writes: %s", writes, diff)
			}
			if err == nil {
				break
			}
		}
	})
	t.Run("a deletion is refused while no controller can remove finalizers", func(t *testing.T) {
		setFinalizers(t, c, "first", "sea.example.com/cargo")
		scale(t, c, 0)
		before := inCluster(t, c)
		_, err := deploy.Delete(t.Context(), options(t, config, operator), func([]string) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "Deployment sea/manager is not available") || !strings.Contains(err.Error(), "Ship sea/first (sea.example.com/cargo)") {
			t.Errorf("%v", err)
		}
		if diff := cmp.Diff(before, inCluster(t, c)); diff != "" {
			t.Error(diff)
		}
		scale(t, c, 1)
	})
	t.Run("nothing is deleted without an agreement", func(t *testing.T) {
		before := inCluster(t, c)
		refusal := errors.New("no")
		var asked []string
		_, err := deploy.Delete(t.Context(), options(t, config, operator), func(lines []string) error { asked = lines; return refusal })
		want := []string{"deployment manager in namespace sea of the cluster at " + config.Host, "1 ships.sea.example.com object", "namespace sea, with everything in it", "1 CustomResourceDefinition", "1 ServiceAccount", "1 ClusterRole", "1 ConfigMap", "1 Deployment"}
		if diff := cmp.Diff(want, asked); diff != "" || !errors.Is(err, refusal) {
			t.Error(err, diff)
		}
		if diff := cmp.Diff(before, inCluster(t, c)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a deletion waits for the controller, and continues after each interruption", func(t *testing.T) {
		wait := shortly(t, config, "Ship sea/first: it has finalizers: sea.example.com/cargo")
		if running(t, c) != 1 {
			t.Errorf("the controller was deleted before the objects: %s", wait)
		}
		setFinalizers(t, c, "first")
		for writes := 1; ; writes++ {
			err := interruptedAfter(t, config, 1, func(ctx context.Context, config *rest.Config) error {
				_, err := deploy.Delete(ctx, options(t, config, operator), func([]string) error { return nil })
				return err
			})
			if err == nil {
				if writes < 6 {
					t.Errorf("the deletion was interrupted only %d times", writes)
				}
				break
			}
		}
		o := options(t, config, "")
		o.Name = "lake"
		if _, err := deploy.Delete(t.Context(), o, func([]string) error { return nil }); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(empty, inCluster(t, c)); diff != "" {
			t.Error(diff)
		}
	})
}

// shortly deletes within a time that is too short, and returns the error, which must contain a text.
func shortly(t *testing.T, config *rest.Config, want string) string {
	t.Helper()
	o := options(t, config, operator)
	o.Timeout = 2 * time.Second
	_, err := deploy.Delete(t.Context(), o, func([]string) error { return nil })
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v", err)
	}
	return err.Error()
}

// setFinalizers sets the finalizers of a Ship, as its controller would.
func setFinalizers(t *testing.T, c *cluster.Cluster, name string, finalizers ...string) {
	t.Helper()
	list, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	if err != nil {
		t.Fatal(err)
	}
	ships := schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "ships"}
	if _, err := c.Dynamic.Resource(ships).Namespace("sea").Patch(t.Context(), name, types.MergePatchType, list, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// scale scales the manager, and waits until the Deployment is current.
func scale(t *testing.T, c *cluster.Cluster, replicas int) {
	t.Helper()
	manager := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	manager.SetName("manager")
	manager.SetNamespace("sea")
	at, err := c.At(manager)
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)
	if _, err := at.Patch(t.Context(), "manager", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if err := ready.Wait(ctx, c, []*unstructured.Unstructured{manager}, func([]ready.Pending) {}); err != nil {
		t.Fatal(err)
	}
}

// startWebhook starts a webhook that drops its first requests. It returns the number of requests, and
// a manifest with a configuration for it.
func startWebhook(t *testing.T, drops int64) (calls *atomic.Int64, manifest string) {
	t.Helper()
	authority, err := pki.New("lake")
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue(pki.Request{CommonName: "lake", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	calls = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= drops {
			panic(http.ErrAbortHandler)
		}
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return calls, fmt.Sprintf(lake, server.URL, base64.StdEncoding.EncodeToString(authority.CertPEM()))
}

// lake is a manifest with a CRD and a webhook, whose address and certificate authority are missing.
const lake = `{apiVersion: v1, kind: Namespace, metadata: {name: lake}}
---
apiVersion: lake.example.com/v1
kind: Boat
metadata: {name: first, namespace: lake}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: boats}
webhooks:
- name: boats.lake.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  rules: [{operations: [CREATE], apiGroups: [lake.example.com], apiVersions: [v1], resources: [boats]}]
  clientConfig: {url: "%s", caBundle: %s}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.lake.example.com}
spec:
  group: lake.example.com
  scope: Namespaced
  names: {kind: Boat, plural: boats}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// elsewhere is a part of a manifest with a kind and a namespace that the operator does not have.
const elsewhere = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: sea-reader, namespace: kube-public}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`

func withoutPods(objects []string) []string {
	return slices.DeleteFunc(slices.Clone(objects), func(o string) bool {
		return strings.HasPrefix(o, "Pod ") || strings.HasPrefix(o, "ReplicaSet ")
	})
}

// without removes the documents of some kinds from a manifest.
func without(manifest string, kinds ...string) string {
	documents := strings.Split(manifest, "---\n")
	return strings.Join(slices.DeleteFunc(documents, func(d string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(d, "\nkind: "+kind+"\n") })
	}), "---\n")
}

// running returns the number of Pods in the namespace of the operator that are ready.
func running(t *testing.T, c *cluster.Cluster) (pods int) {
	t.Helper()
	list, err := c.Dynamic.Resource(kinds[4]).Namespace("sea").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if ready.Reason(&list.Items[i]) == "" {
			pods++
		}
	}
	return pods
}
