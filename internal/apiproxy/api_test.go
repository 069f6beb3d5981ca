package apiproxy

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// api is a test API server that serves ConfigMaps in JSON and protobuf.
type api struct {
	*httptest.Server

	mu      sync.Mutex
	rv      int
	objects map[string]*corev1.ConfigMap
	history []change
	changed chan struct{}
	// seen lists the requests; headers holds the headers of the last request.
	seen    []string
	headers http.Header
	work    func([]byte)
	// compacted is the first version that can still be listed.
	compacted int
}

type change struct {
	rv   int
	kind string
	obj  *corev1.ConfigMap
}

func newAPI(t testing.TB) *api {
	t.Helper()
	a := &api{objects: map[string]*corev1.ConfigMap{}, changed: make(chan struct{}), rv: 100}
	a.Server = httptest.NewUnstartedServer(a)
	a.EnableHTTP2 = true
	a.StartTLS()
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

func (a *api) config() *rest.Config {
	return &rest.Config{Host: a.URL, BearerToken: "the identity's", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func (a *api) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

// put creates or changes an object directly, not through the proxy.
func (a *api) put(name, value string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := "ADDED"
	if a.objects[name] != nil {
		kind = "MODIFIED"
	}
	a.commit(kind, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"v": value}})
	return a.rv
}

func (a *api) commit(kind string, obj *corev1.ConfigMap) *corev1.ConfigMap {
	a.rv++
	obj.ResourceVersion = strconv.Itoa(a.rv)
	obj.TypeMeta = metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
	if kind == "DELETED" {
		delete(a.objects, obj.Name)
	} else {
		a.objects[obj.Name] = obj
	}
	a.history = append(a.history, change{a.rv, kind, obj})
	close(a.changed)
	a.changed = make(chan struct{})
	return obj
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.seen = append(a.seen, r.Method+" "+r.URL.RequestURI())
	a.headers = r.Header.Clone()
	a.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer the identity's" {
		send(w, r, 401, &metav1.Status{Code: 401, Reason: "Unauthorized"})
		return
	}
	const prefix = "/api/v1/namespaces/default/configmaps"
	switch {
	case strings.HasPrefix(r.URL.Path, "/echo"):
		echo(w, r)
	case strings.HasSuffix(r.URL.Path, "/exec"):
		upgraded(w)
	case r.URL.Path == prefix && r.Method == http.MethodGet && isTrue(r.URL.Query(), "watch"):
		a.watch(w, r)
	default:
		name := strings.Trim(strings.TrimPrefix(r.URL.Path, prefix), "/")
		body, _ := io.ReadAll(r.Body)
		if a.work != nil {
			a.work(body)
		}
		code, obj := a.crud(r, name, body)
		send(w, r, code, obj)
	}
}

func (a *api) crud(r *http.Request, name string, body []byte) (int, runtime.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	resource := schema.GroupResource{Resource: "configmaps"}
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		in, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return refused(apierrors.NewBadRequest(err.Error()))
		}
		obj := in.(*corev1.ConfigMap)
		obj.Namespace = "default"
		if obj.Name == "" {
			obj.Name = fmt.Sprintf("%s%d", obj.GenerateName, a.rv)
		}
		old := a.objects[obj.Name]
		switch {
		case r.Method == http.MethodPost && old != nil:
			return refused(apierrors.NewAlreadyExists(resource, obj.Name))
		case r.Method == http.MethodPost:
			return 201, a.commit("ADDED", obj)
		case old == nil:
			return refused(apierrors.NewNotFound(resource, name))
		case obj.ResourceVersion != "" && obj.ResourceVersion != old.ResourceVersion:
			return refused(apierrors.NewConflict(resource, name, fmt.Errorf("the object has been modified")))
		}
		return 200, a.commit("MODIFIED", obj)
	}
	if name == "" {
		return a.list(r)
	}
	obj := a.objects[name]
	if obj == nil {
		return refused(apierrors.NewNotFound(resource, name))
	}
	if r.Method == http.MethodDelete {
		return 200, a.commit("DELETED", obj.DeepCopy())
	}
	return 200, obj
}

// list returns the current list, or the list at exactly the requested version, unless the
// version is compacted.
func (a *api) list(r *http.Request) (int, runtime.Object) {
	list := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}}
	objects, at := a.objects, a.rv
	if q := r.URL.Query(); q.Get("resourceVersionMatch") == "Exact" {
		at, _ = strconv.Atoi(q.Get("resourceVersion"))
		if at < a.compacted {
			return refused(apierrors.NewResourceExpired("the revision is compacted"))
		}
		objects = map[string]*corev1.ConfigMap{}
		for _, c := range a.history {
			if c.rv > at {
				break
			}
			if objects[c.obj.Name] = c.obj; c.kind == "DELETED" {
				delete(objects, c.obj.Name)
			}
		}
	}
	list.ResourceVersion = strconv.Itoa(at)
	for _, o := range sorted(objects) {
		list.Items = append(list.Items, *o)
	}
	return 200, list
}

func sorted(objects map[string]*corev1.ConfigMap) []*corev1.ConfigMap {
	var all []*corev1.ConfigMap
	for _, o := range objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(x, y *corev1.ConfigMap) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

func refused(err *apierrors.StatusError) (int, runtime.Object) {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return int(s.Code), &s
}

// watch sends the initial events if the client requested them, and then the changes.
func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	a.mu.Lock()
	var first []change
	if isTrue(r.URL.Query(), "sendInitialEvents") {
		from = a.rv
		for _, o := range sorted(a.objects) {
			first = append(first, change{0, "ADDED", o})
		}
		end := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}}
		end.ResourceVersion = strconv.Itoa(a.rv)
		end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		first = append(first, change{0, "BOOKMARK", end})
	}
	a.mu.Unlock()
	asProtobuf := strings.Contains(r.Header.Get("Accept"), typeProtobuf)
	w.Header().Set("Content-Type", typeJSON+";stream=watch")
	if asProtobuf {
		w.Header().Set("Content-Type", typeProtobuf+";stream=watch")
	}
	w.WriteHeader(200)
	for _, c := range first {
		_, _ = w.Write(frame(c, asProtobuf))
	}
	w.(http.Flusher).Flush()
	for {
		a.mu.Lock()
		changed := a.changed
		var new []change
		for _, c := range a.history {
			if c.rv > from {
				new = append(new, c)
			}
		}
		from = a.rv
		a.mu.Unlock()
		for _, c := range new {
			_, _ = w.Write(frame(c, asProtobuf))
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func frame(c change, asProtobuf bool) []byte {
	raw, contentType := encode(c.obj, asProtobuf)
	if contentType == typeJSON {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", c.kind, bytes.TrimSpace(raw))
	}
	message, _ := (&metav1.WatchEvent{Type: c.kind, Object: runtime.RawExtension{Raw: raw}}).Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

func encode(obj runtime.Object, asProtobuf bool) ([]byte, string) {
	if !asProtobuf {
		raw, _ := json.Marshal(obj)
		return raw, typeJSON
	}
	var buf bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &buf); err != nil {
		panic(err)
	}
	return buf.Bytes(), typeProtobuf
}

func send(w http.ResponseWriter, r *http.Request, code int, obj runtime.Object) {
	raw, contentType := encode(obj, strings.HasPrefix(r.Header.Get("Accept"), typeProtobuf))
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

// echo answers with the request's body, and adds trailers.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "X-Sum")
	w.Header().Set("X-Path", r.RequestURI)
	n, _ := io.Copy(w, r.Body)
	w.Header().Set("X-Sum", strconv.FormatInt(n, 10))
	w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
}

// upgraded speaks a custom protocol that repeats every line.
func upgraded(w http.ResponseWriter) {
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
	_, _ = io.Copy(conn, buffered)
}

// through starts a proxy in front of the server a, and returns the proxy and a client configuration
// for the proxy.
func through(t testing.TB, a *api, change func(*Config)) (*Proxy, *rest.Config) {
	t.Helper()
	c := Config{Upstream: a.config(), Instance: "controller-1"}
	if change != nil {
		change(&c)
	}
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p, clientConfig(t, p)
}

func clientConfig(t testing.TB, p *Proxy) *rest.Config {
	t.Helper()
	kubeconfig, err := p.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

func clientset(t testing.TB, c *rest.Config, asProtobuf bool) *kubernetes.Clientset {
	t.Helper()
	if asProtobuf {
		c = rest.CopyConfig(c)
		c.ContentType = typeProtobuf
		c.AcceptContentTypes = typeProtobuf + "," + typeJSON
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string]string{"v": value}}
}
