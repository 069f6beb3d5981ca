package notify

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
)

const (
	patience    = 20 * time.Second
	staticToken = "a-static-token-nobody-may-see"
	eventsPath  = "/v1/stores/team-a/store/events"
	pokePath    = "/v1/buckets/team-a/photos/poke"
)

// rig is a running Server. The Server has the store team-a/store with two buckets: photos, which
// two objects declare, and films.
type rig struct {
	t    *testing.T
	url  string
	http *http.Client
	stop func()

	mu     sync.Mutex
	poked  []string
	broken error // the error that Poke returns
	logs   bytes.Buffer
}

func newRig(t *testing.T, change ...func(*Server)) *rig {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, url: "http://" + listener.Addr().String(), http: &http.Client{Timeout: patience, Transport: &http.Transport{}}}
	s := &Server{TokenFile: tokenFile(t, staticToken+"\n"), Listener: listener, Poke: r.poke, Buckets: buckets}
	for _, f := range change {
		f(s)
	}
	logger := funcr.New(func(_, args string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		fmt.Fprintln(&r.logs, args)
	}, funcr.Options{Verbosity: 10})
	ctx, cancel := context.WithCancel(logf.IntoContext(context.Background(), logger))
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	r.stop = sync.OnceFunc(func() {
		r.http.CloseIdleConnections()
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the server did not end with its context")
		}
	})
	t.Cleanup(r.stop)
	return r
}

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *rig) poke(_ context.Context, bucket types.NamespacedName) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if bucket.Name == "nobody" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "storagebuckets"}, bucket.Name)
	}
	if r.broken != nil {
		return r.broken
	}
	r.poked = append(r.poked, bucket.String())
	return nil
}

func buckets(_ context.Context, store types.NamespacedName, bucket string) ([]types.NamespacedName, error) {
	if store.String() != "team-a/store" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "objectstores"}, store.Name)
	}
	switch bucket {
	case "photos":
		return []types.NamespacedName{{Namespace: "team-a", Name: "photos"}, {Namespace: "team-b", Name: "their-photos"}}, nil
	case "films":
		return []types.NamespacedName{{Namespace: "team-a", Name: "films"}}, nil
	case "deleted":
		return []types.NamespacedName{{Namespace: "team-a", Name: "nobody"}}, nil
	}
	return nil, nil
}

func (r *rig) takePoked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.poked
	r.poked = nil
	return got
}

func (r *rig) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logs.String()
}

// request is a request to the server; zero values stand for the usual values.
type request struct {
	method, path, authorization, contentType, contentEncoding, body string
}

func (r *rig) do(q request) (status int, header http.Header, body string) {
	r.t.Helper()
	if q.method == "" {
		q.method = http.MethodPost
	}
	if q.path == "" {
		q.path = eventsPath
	}
	if q.authorization == "" {
		q.authorization = "Bearer " + staticToken
	}
	req, err := http.NewRequestWithContext(r.t.Context(), q.method, r.url+q.path, strings.NewReader(q.body))
	if err != nil {
		r.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": q.authorization, "Content-Type": q.contentType, "Content-Encoding": q.contentEncoding,
	} {
		if value != "" && value != "none" {
			req.Header.Set(name, value)
		}
	}
	resp, err := r.http.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(content)
}

// wantStatus sends a request and checks the status and the JSON of the response.
func (r *rig) wantStatus(q request, want int) string {
	r.t.Helper()
	status, header, body := r.do(q)
	if status != want {
		r.t.Errorf("status %d, want %d: %s", status, want, body)
	}
	if header.Get("Content-Type") == "application/json" && !json.Valid([]byte(body)) {
		r.t.Errorf("no JSON: %s", body)
	}
	return body
}

func TestEventsPokeEveryObjectOfTheirBucketsOnce(t *testing.T) {
	r := newRig(t)
	body := r.wantStatus(request{contentType: "application/json", body: aws("photos", "films", "photos", "unheard-of", "deleted", "photos")},
		http.StatusAccepted)
	if body != `{"poked":3,"unknown":2}`+"\n" {
		t.Errorf("answer %s", body)
	}
	want := []string{"team-a/photos", "team-b/their-photos", "team-a/films"}
	if got := r.takePoked(); !slices.Equal(got, want) {
		t.Errorf("poked %v, want %v", got, want)
	}
}

func TestEveryKindOfSenderIsUnderstood(t *testing.T) {
	r := newRig(t)
	for name, q := range map[string]request{
		"AWS through a Lambda function": {contentType: "application/json; charset=utf-8", body: aws("films")},
		"Amazon SNS":                    {contentType: "text/plain; charset=UTF-8", body: sns("Notification", aws("films"))},
		"MinIO, Bearer":                 {contentType: "application/json", body: minio("films")},
		"MinIO, the bare token":         {authorization: staticToken, body: minio("films")},
		"a scheme in capitals":          {authorization: "BEARER  " + staticToken, body: aws("films")},
	} {
		r.wantStatus(q, http.StatusAccepted)
		if got := r.takePoked(); !slices.Equal(got, []string{"team-a/films"}) {
			t.Errorf("%s: poked %v", name, got)
		}
	}
}

func TestPokeNeedsNoBody(t *testing.T) {
	r := newRig(t)
	for _, q := range []request{
		{path: pokePath},
		{path: pokePath, contentType: "application/octet-stream", body: "anything"},
	} {
		if body := r.wantStatus(q, http.StatusAccepted); body != `{"poked":1,"unknown":0}`+"\n" {
			t.Errorf("answer %s", body)
		}
		if got := r.takePoked(); !slices.Equal(got, []string{"team-a/photos"}) {
			t.Errorf("poked %v", got)
		}
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	for name, test := range map[string]struct {
		request
		want int
	}{
		"no token":                   {request{authorization: "none", body: aws("photos")}, 401},
		"another token":              {request{authorization: "Bearer another-token-nobody-has", body: aws("photos")}, 401},
		"the beginning of the token": {request{authorization: "Bearer " + staticToken[:20], body: aws("photos")}, 401},
		"another scheme":             {request{authorization: "Basic " + staticToken, body: aws("photos")}, 401},
		"two tokens":                 {request{authorization: "Bearer x " + staticToken, body: aws("photos")}, 401},
		"GET":                        {request{method: "GET"}, 405},
		"PUT of a poke":              {request{method: "PUT", path: pokePath}, 405},
		"another path":               {request{path: "/"}, 404},
		"a path below":               {request{path: eventsPath + "/more"}, 404},
		"no such store":              {request{path: "/v1/stores/team-a/nobody/events", body: aws("photos")}, 404},
		"no such bucket":             {request{path: "/v1/buckets/team-a/nobody/poke"}, 404},
		"an invalid namespace":       {request{path: "/v1/buckets/team.a/photos/poke"}, 404},
		"an invalid store name":      {request{path: "/v1/stores/team-a/%2e%2e%2fstore/events", body: aws("photos")}, 404},
		"no event":                   {request{body: "{"}, 400},
		"too large":                  {request{body: aws("photos") + strings.Repeat(" ", maxBody)}, 413},
		"too many records":           {request{body: aws(make([]string, maxRecords+1)...)}, 413},
		"a form":                     {request{contentType: "application/x-www-form-urlencoded", body: "a=b"}, 415},
		"another character set":      {request{contentType: "application/json; charset=utf-16", body: "{}"}, 415},
		"no media type":              {request{contentType: "/;", body: "{}"}, 415},
		"compressed":                 {request{contentEncoding: "gzip", body: "x"}, 415},
		"a subscription":             {request{contentType: "text/plain", body: sns("SubscriptionConfirmation", "x")}, 501},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{t: t, url: r.url, http: r.http}
			r.wantStatus(test.request, test.want)
		})
	}
	if got := r.takePoked(); len(got) > 0 {
		t.Errorf("poked %v", got)
	}
}

func TestRefusalsSayWhatComesNext(t *testing.T) {
	r := newRig(t)
	_, header, body := r.do(request{authorization: "none"})
	if header.Get("WWW-Authenticate") == "" || !strings.Contains(body, "--notify-token-file") {
		t.Errorf("401 says %v %s", header, body)
	}
	if _, header, _ := r.do(request{method: http.MethodGet}); header.Get("Allow") != http.MethodPost {
		t.Errorf("405 says %v", header)
	}
	if body := r.wantStatus(request{body: sns("SubscriptionConfirmation", "x")}, 501); !strings.Contains(body, "EventBridge") {
		t.Errorf("501 says %s", body)
	}
	r.broken = errors.New("not now")
	_, header, body = r.do(request{path: pokePath})
	if header.Get("Retry-After") == "" || strings.Contains(body, "not now") {
		t.Errorf("503 says %v %s", header, body)
	}
	r.wantStatus(request{body: aws("photos")}, 503)
}

func TestNeitherKeysOfObjectsNorTokensAreLogged(t *testing.T) {
	r := newRig(t)
	r.wantStatus(request{body: aws("photos")}, 202)
	r.wantStatus(request{body: minio("photos")}, 202)
	r.wantStatus(request{body: `{"Records":[{"s3":"confidential"}]}`}, 400)
	r.wantStatus(request{authorization: "Bearer wrong-" + staticToken, body: aws("photos")}, 401)
	r.broken = errors.New("not now")
	r.wantStatus(request{body: aws("photos")}, 503)
	r.stop()
	logs := r.logged()
	for _, secret := range []string{"confidential", staticToken, "192.0.2.1"} {
		if strings.Contains(logs, secret) {
			t.Errorf("%q is in the log:\n%s", secret, logs)
		}
	}
	if !strings.Contains(logs, "not now") || !strings.Contains(logs, "events from a store") {
		t.Errorf("the log says too little:\n%s", logs)
	}
}

func TestRequestsAreCountedByOutcome(t *testing.T) {
	r := newRig(t)
	for _, test := range []struct {
		outcome string
		request request
		status  int
	}{
		{outcomeAccepted, request{body: aws("photos")}, 202},
		{outcomeIgnored, request{body: aws("unheard-of")}, 202},
		{outcomeIgnored, request{body: "{}"}, 202},
		{outcomeUnauthenticated, request{authorization: "none"}, 401},
		{outcomeInvalid, request{body: "x"}, 400},
		{outcomeInvalid, request{path: "/elsewhere"}, 404},
		{outcomeInvalid, request{method: http.MethodGet}, 405},
		{outcomeInvalid, request{body: sns("SubscriptionConfirmation", "x")}, 501},
	} {
		before := testutil.ToFloat64(metrics.Notifications.WithLabelValues(test.outcome))
		r.wantStatus(test.request, test.status)
		if got := testutil.ToFloat64(metrics.Notifications.WithLabelValues(test.outcome)) - before; got != 1 {
			t.Errorf("status %d: %s counted %v times", test.status, test.outcome, got)
		}
	}
}

func TestReplacedTokenCountsAtOnce(t *testing.T) {
	var path string
	r := newRig(t, func(s *Server) { path = s.TokenFile })
	r.wantStatus(request{path: pokePath}, 202)
	if err := os.WriteFile(path, []byte("another-token-from-now-on"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.wantStatus(request{path: pokePath}, 401)
	r.wantStatus(request{path: pokePath, authorization: "Bearer another-token-from-now-on"}, 202)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.wantStatus(request{path: pokePath, authorization: "Bearer another-token-from-now-on"}, 503)
	if strings.Contains(r.logged(), "another-token") {
		t.Error("the token is in the log")
	}
}

func TestServerThatCouldNotBeSafeDoesNotStart(t *testing.T) {
	ok := tokenFile(t, staticToken)
	for name, test := range map[string]struct {
		server Server
		want   string
	}{
		"no way to authenticate clients": {Server{Address: "127.0.0.1:0"}, "--notify-token-file"},
		"plain HTTP on all addresses":    {Server{Address: ":0", TokenFile: ok}, "--notify-cert-dir"},
		"plain HTTP on all of IPv4":      {Server{Address: "0.0.0.0:0", TokenFile: ok}, "--notify-cert-dir"},
		"a token too short":              {Server{Address: "127.0.0.1:0", TokenFile: tokenFile(t, "short\n")}, "16 characters"},
		"an empty token":                 {Server{Address: "127.0.0.1:0", TokenFile: tokenFile(t, "")}, "16 characters"},
		"two tokens":                     {Server{Address: "127.0.0.1:0", TokenFile: tokenFile(t, staticToken+"\n"+staticToken)}, "one word"},
		"no token file":                  {Server{Address: "127.0.0.1:0", TokenFile: filepath.Join(t.TempDir(), "none")}, "no such file"},
		"no certificate":                 {Server{Address: "127.0.0.1:0", TokenFile: ok, CertDir: t.TempDir()}, "tls.crt"},
		"an invalid address":             {Server{Address: "nowhere", TokenFile: ok}, "listening"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := test.server.Start(ctx)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), staticToken) {
				t.Error("the error has the token")
			}
		})
	}
}

func TestServerRunsInEveryReplica(t *testing.T) {
	if (&Server{}).NeedLeaderElection() {
		t.Error("most replicas would not answer a sender")
	}
}

// writeCertificate puts a certificate for 127.0.0.1 into the folder.
func writeCertificate(t *testing.T, dir string, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.key": {Type: "PRIVATE KEY", Bytes: private}, "tls.crt": {Type: "CERTIFICATE", Bytes: der},
	} {
		// Rename the files, in the same way as Kubernetes updates a volume, so that no
		// reader sees a partial update.
		part := filepath.Join(dir, "part")
		if err := errors.Join(os.WriteFile(part, pem.EncodeToMemory(block), 0o600), os.Rename(part, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(certificate)
	return pool
}

func TestRenewedCertificateIsServedWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	pool := writeCertificate(t, dir, 1)
	r := newRig(t, func(s *Server) { s.CertDir = dir })
	r.url = strings.Replace(r.url, "http://", "https://", 1)
	trust := func(pool *x509.CertPool) {
		r.http = &http.Client{Timeout: patience, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
		}}
	}
	trust(pool)
	r.wantStatus(request{path: pokePath}, 202)

	trust(writeCertificate(t, dir, 2))
	tick, late := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		resp, err := r.http.Get(r.url + "/")
		if err == nil {
			_ = resp.Body.Close()
			break
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(err)
		}
	}
	r.wantStatus(request{path: pokePath}, 202)
}
