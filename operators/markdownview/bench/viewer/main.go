// Command viewer measures the viewer. It compares how fast the viewer and nginx serve a page of 100
// kB; nginx serves the same bytes as a static file. The benchmark also measures the memory and the
// start time of a viewer with a book of a thousand pages.
//
//	go run ./bench/viewer [-o result.json]
//
// The viewer and nginx run at the same time, and the load alternates between them after
// each round, so that other work on the machine affects both servers.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

type options struct {
	viewer      string
	rounds      int
	duration    time.Duration
	connections int
	out         string
}

// result holds the measurements.
type result struct {
	Time        time.Time
	LoadAverage string // before the measurement
	Connections int
	Loads       []load
	Book        bookCost
}

// load holds the measurements of the page in one encoding.
type load struct {
	Encoding      string
	BodyBytes     int
	Viewer, Nginx figures
	// Rate is the viewer's request rate divided by nginx's, and P99 is the viewer's 99th
	// percentile divided by nginx's. Rate and P99 use the medians of the rounds.
	Rate, P99 float64
}

func main() {
	var o options
	flag.StringVar(&o.viewer, "viewer", "", "the viewer's `binary` (default: build it)")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of load for each server and encoding")
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "the length of a round")
	flag.IntVar(&o.connections, "connections", 16, "number of concurrent connections")
	flag.StringVar(&o.out, "o", "", "write the result as JSON to this `file`")
	flag.Parse()
	if err := run(o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options, out io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-viewer-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.viewer == "" {
		if o.viewer, err = buildViewer(dir); err != nil {
			return err
		}
	}
	r := result{Time: time.Now(), LoadAverage: loadAverage(), Connections: o.connections}
	fmt.Fprintf(out, "load average %s\n", r.LoadAverage)
	if r.Loads, err = besideNginx(o, dir, out); err != nil {
		return err
	}
	if r.Book, err = costOfBook(o.viewer, filepath.Join(dir, "book")); err != nil {
		return err
	}
	fmt.Fprintln(out, r.Book)
	if o.out == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(data, '\n'), 0o644)
}

func buildViewer(dir string) (string, error) {
	binary := filepath.Join(dir, "viewer")
	command := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary,
		"github.com/koboshi-dev/koboshi/operators/markdownview/cmd/viewer")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the viewer: %w: %s", err, out)
	}
	return binary, nil
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

func besideNginx(o options, dir string, out io.Writer) ([]load, error) {
	content, root := filepath.Join(dir, "content"), filepath.Join(dir, "nginx")
	if err := writePage(content); err != nil {
		return nil, err
	}
	viewer, err := startViewer(o.viewer, content)
	if err != nil {
		return nil, err
	}
	defer viewer.stop()
	for _, encoding := range []string{"", "gzip"} {
		if err := savePage(viewer.address, encoding, root); err != nil {
			return nil, err
		}
	}
	nginx, err := startNginx(root)
	if err != nil {
		return nil, err
	}
	defer nginx.stop()

	var loads []load
	for _, encoding := range []string{"identity", "gzip"} {
		l := load{Encoding: encoding}
		servers := []struct {
			figures *figures
			address string
		}{{&l.Viewer, viewer.address}, {&l.Nginx, nginx.address}}
		for i := range o.rounds + 1 {
			for j := range servers {
				s := servers[(i+j)%2] // neither server is always first
				f, size, err := measure(s.address, encoding, o)
				if err != nil {
					return nil, fmt.Errorf("load on %s: %w", s.address, err)
				}
				if l.BodyBytes != 0 && l.BodyBytes != size {
					return nil, fmt.Errorf("the two servers serve %d and %d bytes, but should serve the same content", l.BodyBytes, size)
				}
				l.BodyBytes = size
				if i > 0 { // the first round warms up
					s.figures.add(f)
				}
			}
		}
		l.Rate = l.Viewer.Rate.Median / l.Nginx.Rate.Median
		l.P99 = l.Viewer.P99.Median / l.Nginx.P99.Median
		fmt.Fprintf(out, "%s, %d bytes, %d connections\n  viewer %s\n  nginx  %s\n  rate %.2f of nginx, p99 %.2f of nginx\n",
			encoding, l.BodyBytes, o.connections, l.Viewer, l.Nginx, l.Rate, l.P99)
		loads = append(loads, l)
	}
	return loads, nil
}
