package refs

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// watchSpy sits between the client and the API server.
type watchSpy struct {
	// open counts the watches in progress.
	open atomic.Int32
	// begun counts all watches.
	begun atomic.Int32
	// expire makes the API server answer the next watch with "too old".
	expire atomic.Bool
	next   http.RoundTripper
}

func (s *watchSpy) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		s.next = next
		return s
	})
	return config
}

func (s *watchSpy) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.RawQuery, "watch=true") {
		return s.next.RoundTrip(req)
	}
	s.begun.Add(1)
	if s.expire.CompareAndSwap(true, false) {
		const gone = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},` +
			`"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}`
		return &http.Response{
			StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   io.NopCloser(strings.NewReader(gone)),
		}, nil
	}
	resp, err := s.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusOK {
		s.open.Add(1)
		resp.Body = &spiedBody{ReadCloser: resp.Body, closed: sync.OnceFunc(func() { s.open.Add(-1) })}
	}
	return resp, err
}

type spiedBody struct {
	io.ReadCloser
	closed func()
}

func (b *spiedBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

func TestExpiredWatchIsBegunAnewAndNothingIsMissed(t *testing.T) {
	ns := newNamespace(t)
	spy := &watchSpy{}
	spy.expire.Store(true)
	logs := &logBuffer{}
	r := newRig(t, spy.wrap(config), logs.logger())
	ref := Ref{Kind: "Secret", Namespace: ns, Name: "keys"}
	r.Want(owner("a"), ref)
	r.wantTold(owner("a"))
	eventually(t, func() bool { return spy.begun.Load() > 0 }, "no watch")
	s := createSecret(t, ns, "keys")
	r.wantTold(owner("a"))
	r.wantVersion(ref, s)
	if text := logs.String(); text != "" {
		t.Errorf("logged:\n%s", text)
	}
}

// cable is a connection to the API server that can be cut.
type cable struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	cut      bool
	conns    []net.Conn
}

func newCable(t *testing.T, config *rest.Config) (*cable, *rest.Config) {
	t.Helper()
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: l, to: server.Host}
	t.Cleanup(func() {
		_ = l.Close()
		c.set(true)
	})
	go c.serve()
	config = rest.CopyConfig(config)
	config.ServerName = server.Hostname()
	server.Host = l.Addr().String()
	config.Host = server.String()
	return c, config
}

func (c *cable) serve() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		c.mu.Lock()
		if c.cut {
			_, _ = near.Close(), far.Close()
		}
		c.conns = append(c.conns, near, far)
		c.mu.Unlock()
		go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
		go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
	}
}

func (c *cable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for _, conn := range c.conns {
			_ = conn.Close()
		}
		c.conns = nil
	}
}

func TestLastVersionStandsWhileTheAPIServerIsAwayAndChangesAreSeenAfterwards(t *testing.T) {
	ns := newNamespace(t)
	cable, config := newCable(t, config)
	r := newRig(t, config, logr.Discard())
	kept, gone := Ref{"Secret", ns, "kept"}, Ref{"Secret", ns, "gone"}
	first, second := createSecret(t, ns, "kept"), createSecret(t, ns, "gone")
	r.Want(owner("a"), kept)
	r.Want(owner("b"), gone)
	r.wantVersion(kept, first)
	r.wantVersion(gone, second)
	// The Watcher makes a new version visible a moment before it tells the owner.
	eventually(t, func() bool { return len(r.told) == 2 }, "the owners are not told of the first listings")
	for len(r.told) > 0 {
		<-r.told
	}
	cable.set(true)
	changed := change(t, first)
	deleteSecret(t, second)
	r.wantVersion(kept, first)
	r.wantVersion(gone, second)
	cable.set(false)
	r.wantVersion(kept, changed)
	r.wantVersion(gone, nil)
	eventually(t, func() bool { return len(r.told) == 2 }, "told %d times", len(r.told))
}

func TestWatcherEndsAtOnceWhileTheAPIServerIsAway(t *testing.T) {
	ns := newNamespace(t)
	cable, config := newCable(t, config)
	spy := &watchSpy{}
	r := newRig(t, spy.wrap(config), logr.Discard())
	r.Want(owner("a"), Ref{"Secret", ns, "keys"})
	r.wantTold(owner("a"))
	eventually(t, func() bool { return spy.open.Load() == 1 }, "no watch")
	cable.set(true)
	eventually(t, func() bool { return spy.begun.Load() > 1 || spy.open.Load() == 0 }, "the cut is not seen")
	r.stop()
}

func TestForbiddenWatchIsSaidOnceAndWorksWhenTheNameIsAllowed(t *testing.T) {
	ns := newNamespace(t)
	logs := &logBuffer{}
	spy := &watchSpy{}
	nobody := rest.CopyConfig(config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody-in-" + ns}
	r := newRig(t, spy.wrap(nobody), logs.logger())
	ref := Ref{Kind: "Secret", Namespace: ns, Name: "keys"}
	s := createSecret(t, ns, "keys")
	r.Want(owner("a"), ref)
	eventually(t, func() bool { return strings.Contains(logs.String(), "forbidden") }, "nothing logged")
	r.wantTold(owner("a"))
	if !r.Forbidden(ref) {
		t.Error("not reported as forbidden")
	}
	if _, known := r.Version(ref); known {
		t.Error("known without the right to look")
	}

	// If the user may list but not watch, the version becomes known, and only the watch is
	// refused.
	allow(t, ns, nobody.Impersonate.UserName, "keys", "list")
	r.wantTold(owner("a"))
	r.wantVersion(ref, s)
	if r.Forbidden(ref) {
		t.Error("still reported as forbidden")
	}
	allow(t, ns, nobody.Impersonate.UserName, "keys", "watch")
	eventually(t, func() bool { return strings.Contains(logs.String(), "watching again") }, "not watched")
	s = change(t, s)
	r.wantVersion(ref, s)
	if text := logs.String(); strings.Count(text, "\n") != 2 {
		t.Errorf("want two lines, got:\n%s", text)
	}
}

// allow gives the user a right to one Secret.
func allow(t *testing.T, namespace, user, name, verb string) {
	t.Helper()
	_, err := api.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: verb},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{verb},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: verb},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: verb},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// logBuffer keeps what was logged at the default level, one entry per line.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		fmt.Fprintln(&b.buf, prefix, args)
	}, funcr.Options{})
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestAnnotationsOfWhatIsWatchedDoNotStayInMemory(t *testing.T) {
	const objects, size = 60, 200 << 10
	ns := newNamespace(t)
	r := newRig(t, config, logr.Discard())
	versions := make([]string, objects)
	annotate := func(i int, content string) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprint("large-", i),
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat(content, size)},
		}}
		secrets, err := api.CoreV1().Secrets(ns), error(nil)
		if content == "a" {
			s, err = secrets.Create(t.Context(), s, metav1.CreateOptions{})
		} else {
			s, err = secrets.Update(t.Context(), s, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		versions[i] = string(s.UID) + "/" + s.ResourceVersion
	}
	seen := func(i int) {
		ref := Ref{"Secret", ns, fmt.Sprint("large-", i)}
		eventually(t, func() bool { got, _ := r.Version(ref); return got == versions[i] }, "%v not seen", ref)
	}
	before := heap()
	for i := range objects {
		annotate(i, "a")
		r.Want(owner(fmt.Sprint(i)), Ref{"Secret", ns, fmt.Sprint("large-", i)})
	}
	for i := range objects { // in a listing
		seen(i)
	}
	for i := range objects { // in a watch
		annotate(i, "b")
	}
	for i := range objects {
		seen(i)
	}
	each := (heap() - before) / objects
	t.Logf("%d KiB of heap and stack for each of %d watches", each>>10, objects)
	if each > size/2 {
		t.Errorf("%d bytes stay for each watch; an annotation has %d", each, size)
	}
}

// heap returns the memory in use after a collection, including stacks.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
