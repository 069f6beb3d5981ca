// Package e2e runs the operator as it is shipped, on a control plane that runs Pods as
// processes, and reads its sites as users do.
//
// By default, the package uses the programs that "make build" creates in this module and in
// the root of the repository. The variables KOBOSHI, MANAGER and VIEWER name other
// programs.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/readers"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

const (
	// patience limits the time of each step. This limit is long enough for a busy machine.
	patience = 2 * time.Minute
	// brokenImage is an image whose program exits immediately.
	brokenImage = "rig.example/broken:1"
	mdBookImage = "rig.example/mdbook:1"
)

// world is the rig that all tests use, one after the other.
var world *rig.Rig

// realMdBook reports whether the tests use the real mdBook.
var realMdBook bool

func TestMain(m *testing.M) {
	if runtime.GOOS != "linux" {
		fmt.Fprintln(os.Stderr, "Pods can run as processes only on Linux: these tests are skipped")
		return
	}
	if err := suite(m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func suite(m *testing.M) error {
	dir, err := os.MkdirTemp("", "markdownview-e2e-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	mdBook, err := findMdBook(dir)
	if err != nil {
		return err
	}
	return rig.With(context.Background(), rig.Options{
		Programs:    map[string]string{brokenImage: "/bin/false", mdBookImage: mdBook},
		ManagerArgs: []string{"--allowed-viewer-images=rig.example/*", "--progress-deadline=5s"},
		Log:         os.Stderr,
	}, func(r *rig.Rig) error {
		world = r
		if m.Run() != 0 {
			return errors.New("the tests failed")
		}
		return nil
	})
}

// findMdBook returns the path of mdBook. If mdBook is not installed, findMdBook builds a
// replacement that reports how it was started, and returns the path of the replacement.
func findMdBook(dir string) (string, error) {
	if path, err := exec.LookPath("mdbook"); err == nil {
		realMdBook = true
		return filepath.Abs(path)
	}
	path := filepath.Join(dir, "mdbook")
	build := exec.Command("go", "build", "-o", path, "../mdbook")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the replacement for mdBook: %w\n%s", err, out)
	}
	return path, nil
}

// must unwraps the result of a setup step, and fails the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// newView returns a site in a new namespace, without creating the site. If the site exists
// at the end of the test, it is deleted.
func newView(t *testing.T, spec viewv1.MarkdownViewSpec) *viewv1.MarkdownView {
	t.Helper()
	ns := must[string](t)(world.Namespace(t.Context()))
	view := &viewv1.MarkdownView{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "handbook"}, Spec: spec}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if t.Failed() {
			t.Log(describe(ctx, ns))
		}
		if err := remove(ctx, view); err != nil {
			t.Error(err)
		}
	})
	return view
}

// describe returns the Pods and Events of a namespace, which may explain why a test failed.
func describe(ctx context.Context, namespace string) string {
	var pods corev1.PodList
	var events corev1.EventList
	err := errors.Join(world.List(ctx, &pods, client.InNamespace(namespace)), world.List(ctx, &events, client.InNamespace(namespace)))
	lines := []string{fmt.Sprintf("Pods and Events of namespace %s (error: %v):", namespace, err)}
	for i := range pods.Items {
		pod := &pods.Items[i]
		lines = append(lines, fmt.Sprintf("Pod %s %s, deletion requested: %t", pod.Name, pod.Status.PodIP, pod.DeletionTimestamp != nil))
		for _, c := range pod.Status.Conditions {
			lines = append(lines, fmt.Sprintf("  %s=%s since %s %s", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.TimeOnly), c.Message))
		}
		for _, c := range pod.Status.ContainerStatuses {
			lines = append(lines, fmt.Sprintf("  container %s: ready %t, %d restarts", c.Name, c.Ready, c.RestartCount))
		}
	}
	for i := range events.Items {
		e := &events.Items[i]
		lines = append(lines, fmt.Sprintf("%s %d times %s %s: %s", e.LastTimestamp.UTC().Format(time.TimeOnly), e.Count, e.InvolvedObject.Name, e.Reason, e.Message))
	}
	return strings.Join(lines, "\n")
}

// publish creates the site, waits until it is served, and returns its address.
func publish(t *testing.T, view *viewv1.MarkdownView) string {
	t.Helper()
	begin := time.Now()
	if err := world.Create(t.Context(), view); err != nil {
		t.Fatal(err)
	}
	awaitServing(t, view)
	site := must[string](t)(world.Address(t.Context(), patience, view))
	t.Logf("served after %v", time.Since(begin).Round(time.Millisecond))
	return site
}

// awaitServing waits until all viewers serve the spec.
func awaitServing(t *testing.T, view *viewv1.MarkdownView) {
	t.Helper()
	await(t, view.Name+" to serve its spec", func(ctx context.Context) error { return world.Serving(ctx, view) })
}

func await(t *testing.T, what string, holds func(context.Context) error) {
	t.Helper()
	if err := rig.Await(t.Context(), patience, what, holds); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, view *viewv1.MarkdownView, change func(*viewv1.MarkdownViewSpec)) {
	t.Helper()
	err := rig.Save(t.Context(), world, patience, view, func(v *viewv1.MarkdownView) { change(&v.Spec) })
	if err != nil {
		t.Fatal(err)
	}
}

// page is the response at an address.
type page struct {
	status int
	header http.Header
	text   []byte
}

func read(ctx context.Context, url string) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return page{}, err
	}
	// Each request uses a new connection, so that the requests do not all go to the same
	// viewer.
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return page{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return page{resp.StatusCode, resp.Header, text}, err
}

func get(t *testing.T, url string) page {
	t.Helper()
	return must[page](t)(read(t.Context(), url))
}

// expectEdition fails unless the home page of a site has this edition.
func expectEdition(t *testing.T, site string, want int) {
	t.Helper()
	got, err := readers.EditionOf(get(t, site).text)
	if err != nil || got != want {
		t.Fatalf("%s is of edition %d (%v), want %d", site, got, err, want)
	}
}
