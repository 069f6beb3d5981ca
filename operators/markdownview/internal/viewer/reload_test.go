package viewer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/viewer"
)

// volume is a directory as Kubernetes writes it. The link ..data leads to the directory
// with the files, and other links lead to the files through ..data. An update swaps ..data.
type volume struct {
	t    testing.TB
	path string
	n    int
}

func newVolume(t testing.TB, files map[string]string) *volume {
	v := &volume{t: t, path: t.TempDir()}
	v.swap(files)
	return v
}

func (v *volume) swap(files map[string]string) {
	v.t.Helper()
	v.n++
	old, _ := os.Readlink(filepath.Join(v.path, "..data"))
	dir := fmt.Sprintf("..2026_%06d", v.n)
	for name, text := range files {
		write(v.t, filepath.Join(v.path, dir, name), text)
		top, _, _ := strings.Cut(name, "/")
		_ = os.Symlink(filepath.Join("..data", top), filepath.Join(v.path, top)) // fails if the link already exists
	}
	next := filepath.Join(v.path, "..data_tmp")
	if err := os.Symlink(dir, next); err != nil {
		v.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(v.path, "..data")); err != nil {
		v.t.Fatal(err)
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(v.path, old)); err != nil {
			v.t.Fatal(err)
		}
	}
}

// version returns a book whose pages all contain its number.
func version(n int) map[string]string {
	text := fmt.Sprintf("# Page\n\nversion-%d %s\n", n, strings.Repeat("filler ", 200))
	return map[string]string{"README.md": text, "sub/a.md": text, "sub/b.md": text}
}

func served(t testing.TB, url string) string {
	_, text := get(t, url)
	_, rest, _ := strings.Cut(text, "version-")
	n, _, _ := strings.Cut(rest, " ")
	return n
}

func TestNoAnswerMixesTwoVersionsWhileTheContentChanges(t *testing.T) {
	v := newVolume(t, version(1))
	r := start(t, viewer.Options{Content: v.path})
	ready(t, r)

	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	versions := map[string]string{} // by path, encoding and tag
	var readers sync.WaitGroup
	for _, path := range []string{"/", "/sub/a.html", "/sub/b.html"} {
		readers.Go(func() {
			client := &http.Client{Transport: &http.Transport{}} // decompresses automatically
			for ctx.Err() == nil {
				tag, text := fetch(t, client, r.url+path)
				_, rest, _ := strings.Cut(text, "version-")
				n, _, _ := strings.Cut(rest, " ")
				mu.Lock()
				if before, ok := versions[path+tag]; n == "" || ok && before != n {
					t.Errorf("%s with tag %s is of version %q and of %q", path, tag, before, n)
				}
				versions[path+tag] = n
				mu.Unlock()
			}
		})
	}
	const edits = 8
	for n := 2; n <= edits; n++ {
		v.swap(version(n))
		until(t, "the new version", func() bool { return served(t, r.url+"/sub/b.html") == fmt.Sprint(n) })
	}
	cancel()
	readers.Wait()
	if len(versions) < edits {
		t.Errorf("only %d different answers were seen", len(versions))
	}
}

func fetch(t testing.TB, client *http.Client, url string) (tag, text string) {
	answer, err := client.Get(url)
	if err != nil {
		t.Errorf("a request failed during a reload: %v", err)
		return "", ""
	}
	defer func() { _ = answer.Body.Close() }()
	var out strings.Builder
	if _, err := io.Copy(&out, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("status %d, error %v", answer.StatusCode, err)
	}
	return answer.Header.Get("ETag"), out.String()
}

func TestTheDirectoryIsReadInOneState(t *testing.T) {
	v := newVolume(t, version(0))
	viewing, err := viewer.New(viewer.Options{Content: v.path})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				v.swap(version(n))
			}
		}
	})
	for range 300 {
		files, err := viewing.Read()
		if err != nil {
			continue // the directory kept changing; the viewer reports this and tries again later
		}
		seen := map[string]bool{}
		for _, f := range files {
			seen[string(f.Data)] = true
		}
		if len(files) != 3 || len(seen) != 1 {
			t.Errorf("%d files from %d states of the directory were read together", len(files), len(seen))
			break
		}
	}
	close(stop)
	writer.Wait()
}

func TestAnEditOfAPlainDirectoryIsServed(t *testing.T) {
	dir := content(t, version(1))
	r := start(t, viewer.Options{Content: dir, Rescan: time.Hour})
	ready(t, r)
	for n := 2; n <= 4; n++ {
		write(t, filepath.Join(dir, "sub/b.md"), version(n)["sub/b.md"])
		until(t, "the edit", func() bool { return served(t, r.url+"/sub/b.html") == fmt.Sprint(n) })
	}
	write(t, filepath.Join(dir, "new/deep/c.md"), version(9)["README.md"])
	until(t, "a page in a new directory", func() bool { return served(t, r.url+"/new/deep/c.html") == "9" })
	write(t, filepath.Join(dir, "new/deep/c.md"), version(10)["README.md"])
	until(t, "an edit in a new directory", func() bool { return served(t, r.url+"/new/deep/c.html") == "10" })
	if err := os.Remove(filepath.Join(dir, "new/deep/c.md")); err != nil {
		t.Fatal(err)
	}
	until(t, "the page to be gone", func() bool {
		answer, _ := get(t, r.url+"/new/deep/c.html")
		return answer.StatusCode == http.StatusNotFound
	})
}

func TestAChangeThatIsNotAnnouncedIsFoundByLooking(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later") // cannot be watched: it is not there yet
	r := start(t, viewer.Options{Content: dir, Rescan: 10 * time.Millisecond})
	until(t, "the problem to be reported", func() bool {
		answer, text := get(t, r.url+"/readyz")
		return answer.StatusCode == http.StatusServiceUnavailable && strings.Contains(text, "problem") && strings.Contains(text, "later")
	})
	if answer, _ := get(t, r.url+"/"); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without content a page has status %d", answer.StatusCode)
	}
	if answer, _ := get(t, r.url+"/healthz"); answer.StatusCode != http.StatusOK {
		t.Errorf("without content the viewer is not alive: %d; it would be restarted for nothing", answer.StatusCode)
	}
	write(t, filepath.Join(dir, "README.md"), version(1)["README.md"])
	ready(t, r)
	// The viewer may have read the file while it was still empty.
	until(t, "its text", func() bool { return served(t, r.url+"/") == "1" })
}

func TestAWorseStateKeepsTheOldSiteAndSaysSo(t *testing.T) {
	for name, worse := range map[string]map[string]string{
		"empty":           {"note.txt": "no page"},
		"broken SUMMARY":  {"SUMMARY.md": "- [gone](gone.md)\n", "README.md": "# New\n\nversion-2 x"},
		"colliding pages": {"a/README.md": "# A", "a/index.md": "version-2 x", "README.md": "version-2 x"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t, version(1))
			r := start(t, viewer.Options{Content: v.path})
			ready(t, r)
			v.swap(worse)
			until(t, "the problem", func() bool {
				_, text := get(t, r.url+"/readyz")
				return strings.Contains(text, "\nproblem ")
			})
			if answer, _ := get(t, r.url+"/readyz"); answer.StatusCode != http.StatusOK {
				t.Errorf("with the old site it is not ready: %d", answer.StatusCode)
			}
			if got := served(t, r.url+"/"); got != "1" {
				t.Errorf("version %q is served", got)
			}
			// The viewer writes the line after readyz reports the problem.
			until(t, "a log line saying that the previous site is kept", func() bool {
				return strings.Contains(r.log.String(), "the previous site")
			})
			v.swap(version(3))
			until(t, "the repaired content", func() bool { return served(t, r.url+"/") == "3" })
			if _, text := get(t, r.url+"/readyz"); strings.Contains(text, "problem") {
				t.Errorf("the problem is still reported after its repair: %s", text)
			}
		})
	}
}

func TestLinksOutOfThePlainDirectoryAreNotServed(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.txt")
	write(t, secret, "secret")
	dir := content(t, version(1))
	write(t, filepath.Join(dir, ".git/config"), "hidden")
	for name, to := range map[string]string{"a.txt": secret, "b.txt": "../../../../../../../../etc/hostname", "inside.md": "sub/a.md"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, viewer.Options{Content: dir})
	ready(t, r)
	for path, want := range map[string]int{"/a.txt": 404, "/b.txt": 404, "/.git/config": 404, "/inside.html": 200} {
		if answer, _ := get(t, r.url+path); answer.StatusCode != want {
			t.Errorf("%s has status %d, want %d", path, answer.StatusCode, want)
		}
	}
}
