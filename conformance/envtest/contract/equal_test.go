package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// stockVariable names a folder with stock programs for the comparison.
const stockVariable = "CONTRACT_STOCK"

// varies lists paths whose response depends on the process or the build, with the reason.
var varies = map[string]string{
	"/metrics":                 "counts what the process has done",
	"/metrics/slis":            "counts what the process has done",
	"/statusz":                 "reports how long the process has been running",
	"/version":                 "reports when and from which source the program was built",
	"/openid/v1/jwks":          "has the keys of the environment",
	"/logs":                    "lists the logs of the machine",
	"/flagz":                   "has a random separator, so that clients do not parse it",
	"/debug/pprof":             "profiles the process",
	"/debug/flags/v":           "changes the verbosity",
	"/debug/controllers/leaks": "inspects the process",
}

// A side is one of the two environments that are compared.
type side struct {
	env    *envtest.Environment
	client *http.Client
	own    *strings.Replacer // replaces what belongs to this environment alone
}

func newSide(t *testing.T, folder string) side {
	t.Helper()
	env := start(t, func(env *envtest.Environment) {
		env.ControlPlane.GetAPIServer().Path = filepath.Join(folder, "kube-apiserver")
		env.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(folder, "etcd")}
	})
	client, err := rest.HTTPClientFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	server := env.ControlPlane.GetAPIServer()
	return side{env, client, strings.NewReplacer(
		":"+server.Port, ":PORT", ":"+env.ControlPlane.Etcd.URL.Port(), ":ETCD", server.CertDir, "DIR")}
}

// answer is a server's response for a path, without the parts that differ between
// any two environments.
type answer struct {
	Status                int
	Type, ETag, CacheRule string
	Body                  string
}

func (s side) get(t *testing.T, path, accept string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(s.env.Config.Host, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	got, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Body.Close()
	return answer{got.StatusCode, got.Header.Get("Content-Type"), got.Header.Get("ETag"), got.Header.Get("Cache-Control"), s.own.Replace(string(body))}
}

// paths returns the paths that the server itself lists.
func (s side) paths(t *testing.T) []string {
	t.Helper()
	var index metav1.RootPaths
	if err := json.Unmarshal([]byte(s.get(t, "/", "").Body), &index); err != nil {
		t.Fatal(err)
	}
	return index.Paths
}

func TestEveryDocumentOfTheServerEqualsStocks(t *testing.T) {
	stock, ours := bothSides(t)
	paths := stock.paths(t)
	if diff := cmp.Diff(paths, ours.paths(t)); diff != "" {
		t.Errorf("the paths that the server lists (-stock +ours):\n%s", diff)
	}
	var groups struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(stock.get(t, "/openapi/v3", "").Body), &groups); err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Paths {
		paths = append(paths, group.URL)
	}
	compared := 0
	for _, path := range paths {
		if varies[path] != "" {
			continue
		}
		compared++
		equal(t, path, stock.get(t, path, ""), ours.get(t, path, ""))
	}
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, path := range []string{"/api", "/apis"} {
		equal(t, path+" aggregated", stock.get(t, path, aggregated), ours.get(t, path, aggregated))
	}
	const protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	equal(t, "/openapi/v2 in protobuf", stock.get(t, "/openapi/v2", protobuf), ours.get(t, "/openapi/v2", protobuf))
	equal(t, "/openapi/v3/none", stock.get(t, "/openapi/v3/none", ""), ours.get(t, "/openapi/v3/none", ""))
	// The order of the health checks is unspecified.
	for _, path := range []string{"/healthz?verbose", "/livez?verbose", "/readyz?verbose"} {
		a, b := stock.get(t, path, ""), ours.get(t, path, "")
		a.Body, b.Body = sorted(a.Body), sorted(b.Body)
		equal(t, path, a, b)
	}
	t.Logf("%d documents compared", compared)
}

func sorted(lines string) string {
	all := strings.Split(lines, "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func equal(t *testing.T, path string, stock, ours answer) {
	t.Helper()
	if stock == ours {
		return
	}
	if len(stock.Body)+len(ours.Body) > 64<<10 && stock.Body != ours.Body {
		t.Errorf("%s: bodies of %d and %d bytes differ", path, len(stock.Body), len(ours.Body))
		stock.Body, ours.Body = "", ""
	}
	t.Errorf("%s (-stock +ours):\n%s", path, cmp.Diff(stock, ours))
}

func TestANewStoreHoldsWhatStocksHolds(t *testing.T) {
	stock, ours := bothSides(t)
	var a, b map[string]any
	// Controllers of the server complete the objects after they have been created.
	eventually(t, "the same objects", func(ctx context.Context) (err error) {
		if a, err = stock.objects(ctx); err != nil {
			return err
		}
		if b, err = ours.objects(ctx); err != nil {
			return err
		}
		if diff := cmp.Diff(a, b); diff != "" {
			return fmt.Errorf("(-stock +ours):\n%s", diff)
		}
		return nil
	})
	t.Logf("%d objects compared", len(a))
}

// objects returns all stored objects, keyed by resource and name, without the parts that
// differ between any two stores.
func (s side) objects(ctx context.Context) (map[string]any, error) {
	config := rest.CopyConfig(s.env.Config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for _, resource := range storedResources {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource, err)
		}
		for _, o := range list.Items {
			found[resource.Resource+" "+o.GetNamespace()+"/"+o.GetName()] = s.comparable(o)
		}
	}
	return found, nil
}

// storedResources lists the resources whose objects a server creates by itself.
var storedResources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "nodes"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "flowschemas"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "prioritylevelconfigurations"},
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ipaddresses"},
}

// comparable removes UIDs, versions, times and certificates from an object.
func (s side) comparable(o unstructured.Unstructured) any {
	metadata, _ := o.Object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		delete(metadata, field)
	}
	return s.timeless(o.Object)
}

func (s side) timeless(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range maps.All(v) {
			if key != "time" && key != "lastTransitionTime" && key != "client-ca-file" && key != "since" {
				kept[key] = s.timeless(inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, inner := range v {
			kept[i] = s.timeless(inner)
		}
		return kept
	case string:
		return s.own.Replace(v)
	case int64:
		return s.own.Replace(fmt.Sprintf(":%d", v))
	}
	return value
}

func bothSides(t *testing.T) (stock, ours side) {
	t.Helper()
	oursOnly(t)
	reference := os.Getenv(stockVariable)
	if reference == "" {
		t.Skipf("%s names no folder with stock programs to compare with; make test-dropin sets it", stockVariable)
	}
	return newSide(t, reference), newSide(t, folder)
}
