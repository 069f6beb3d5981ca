package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

func startStore() *rig.Store {
	GinkgoHelper()
	s, err := rig.StartStore(GinkgoT().TempDir(), GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	// Stop stops the current process, even if the store was restarted.
	DeferCleanup(func() { s.Stop() })
	return s
}

// managerProcess is a running manager with its settings.
type managerProcess struct {
	*gexec.Session
	metricsAddress string
}

// firstPort is far from the first port of processes with neighboring IDs. portsTried counts the
// ports that this process has tried.
var (
	firstPort  = int64(os.Getpid()) * 7919
	portsTried atomic.Int64
)

// freeAddress returns an address that is free at this moment. Its port is below the ports that
// Linux chooses for other programs (from 32768), so none of them takes the port before the manager
// does.
func freeAddress() string {
	GinkgoHelper()
	for {
		port := 20000 + (firstPort+portsTried.Add(1))%10000
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		defer l.Close()
		return l.Addr().String()
	}
}

// startManager runs a manager with a token and additional arguments, which override the
// default ones.
func startManager(token string, namespaces []string, args ...string) *managerProcess {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	ca, err := rig.AuthorityOf(cfg)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(dir, "kubeconfig")
	Expect(rig.WriteKubeconfig(kubeconfig, cfg.Host, ca, token)).To(Succeed())
	tokenFile := filepath.Join(dir, "notify-token")
	Expect(os.WriteFile(tokenFile, []byte(notifyToken), 0o600)).To(Succeed())
	metricsAddress := freeAddress()
	session, err := rig.StartManager(kubeconfig, GinkgoWriter, append([]string{
		"--leader-elect=false", "--namespaces=" + strings.Join(namespaces, ","), "--zap-log-level=10",
		"--allowed-endpoints=127.0.0.1", "--metrics-bind-address=" + metricsAddress, "--metrics-secure=false",
		"--notify-bind-address=127.0.0.1:0", "--notify-token-file=" + tokenFile,
	}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	m := &managerProcess{Session: session, metricsAddress: metricsAddress}
	DeferCleanup(func() {
		session.Signal(syscall.SIGTERM)
		Eventually(session).Should(gexec.Exit())
	})
	return m
}

// log returns everything that the manager has logged so far.
func (m *managerProcess) log() string { return string(m.Err.Contents()) }

// notifyAddress finds the address of the notification endpoint in the log.
func (m *managerProcess) notifyAddress() string {
	GinkgoHelper()
	line := regexp.MustCompile(`serving notifications.*"(127\.0\.0\.1:\d+)"`)
	var found []string
	Eventually(func() []string {
		found = line.FindStringSubmatch(m.log())
		return found
	}).Should(HaveLen(2), "the address is not in the log")
	return found[1]
}

// post sends an event and returns the status of the response.
func (m *managerProcess) post(ctx context.Context, token, path, body string) int {
	GinkgoHelper()
	target := "http://" + m.notifyAddress() + path
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	return resp.StatusCode
}

// front is a proxy in front of a store. It records every request.
type front struct {
	*httptest.Server

	mu       sync.Mutex
	requests []seenRequest
}

type seenRequest struct {
	at           time.Time
	method, path string
}

// newFront returns a front that is not started yet: the caller chooses whether it uses
// TLS.
func newFront(s *rig.Store) *front {
	GinkgoHelper()
	u, err := url.Parse(s.Endpoint)
	Expect(err).NotTo(HaveOccurred())
	f := &front{}
	forward := &httputil.ReverseProxy{
		Transport: &http.Transport{DisableCompression: true},
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(u)
			// The host name is part of the request's signature, so it must not change.
			p.Out.Host = p.In.Host
		},
		// If the store is down, the client's connection must break as well.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, seenRequest{time.Now(), r.Method, r.URL.Path})
		f.mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	DeferCleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// seen returns the requests for a path since a given time.
func (f *front) seen(path string, since time.Time) []seenRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []seenRequest
	for _, r := range f.requests {
		if r.at.After(since) && strings.TrimSuffix(r.path, "/") == path {
			found = append(found, r)
		}
	}
	return found
}

// total counts all requests since a given time.
func (f *front) total(since time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if r.at.After(since) {
			n++
		}
	}
	return n
}
