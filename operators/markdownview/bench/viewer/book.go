package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/site"
)

// bookCost is the cost of a large book.
type bookCost struct {
	Pages, SourceBytes int
	ReadySeconds       float64 // from the start of the process
	RSSMiB, PeakMiB    float64
	HeapMiB            float64 // only of the Site
	PageBytes          int     // one page with its navigation
	IndexBytes         int     // the search index, compressed
}

func (c bookCost) String() string {
	return fmt.Sprintf("book of %d pages, %.1f MB of Markdown\n  ready in %.2f s, RSS %.0f MiB (peak %.0f), heap of the site %.1f MiB\n  a page is %d kB, the search index %d kB compressed",
		c.Pages, float64(c.SourceBytes)/1e6, c.ReadySeconds, c.RSSMiB, c.PeakMiB, c.HeapMiB, c.PageBytes/1000, c.IndexBytes/1000)
}

const bookPages = 1000

func costOfBook(binary, dir string) (bookCost, error) {
	c := bookCost{Pages: bookPages}
	var files []book.File
	for n := range bookPages {
		source := fmt.Sprintf("# Page %d\n\n", n)
		for s := range 6 {
			source += fmt.Sprintf("## Part %d\n\n%s\n\n```go\nfunc f%d() error { return nil }\n```\n\n", s, text(n*10+s, 740), n)
		}
		f := book.File{Path: fmt.Sprintf("part-%02d/page-%03d.md", n/25, n), Data: []byte(source)}
		c.SourceBytes += len(source)
		files = append(files, f)
		name := filepath.Join(dir, f.Path)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return c, err
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			return c, err
		}
	}
	s, err := startViewer(binary, dir)
	if err != nil {
		return c, err
	}
	defer s.stop()
	c.ReadySeconds = time.Since(s.started).Seconds()
	if c.PageBytes, c.IndexBytes, err = sizes(s.address); err != nil {
		return c, err
	}
	<-time.After(2 * time.Second) // memory used for building has been returned by then
	if c.RSSMiB, c.PeakMiB, err = memory(s.command.Process.Pid); err != nil {
		return c, err
	}
	c.HeapMiB, err = heapOf(files)
	return c, err
}

// sizes returns the sizes of a page and of the search index, whose address the page
// contains.
func sizes(address string) (page, index int, err error) {
	fetch := func(path string) ([]byte, error) {
		request, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return nil, err
		}
		if path != "/" {
			request.Header.Set("Accept-Encoding", "gzip")
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableCompression: true}}).Do(request)
		if err != nil {
			return nil, err
		}
		defer func() { _ = answer.Body.Close() }()
		return io.ReadAll(answer.Body)
	}
	home, err := fetch("/")
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(home), `data-mdv-index="`)
	path, _, _ := strings.Cut(rest, `"`)
	data, err := fetch(path)
	return len(home), len(data), err
}

// memory returns a process's current and peak memory.
func memory(pid int) (now, peak float64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	value := func(key string) float64 {
		_, rest, _ := strings.Cut(string(data), key+":")
		kib, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
		return kib / 1024
	}
	return value("VmRSS"), value("VmHWM"), nil
}

func heapOf(files []book.File) (float64, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := site.Build(files, site.Options{})
	if err != nil {
		return 0, err
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(s)
	return float64(after.HeapAlloc-before.HeapAlloc) / (1 << 20), nil
}
