// Command compile runs go build and shows its progress, because a cold build of
// Kubernetes takes minutes, during which go build prints nothing.
//
//	bin/compile NAME DIR ARGS...
//
// This command runs go build with ARGS in DIR. On a terminal it rewrites one line of
// progress; in a pipe it prints a line from time to time.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	terminalInterval = 200 * time.Millisecond
	pipeInterval     = 20 * time.Second
	columns          = 79
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: compile NAME DIR ARGS-OF-GO-BUILD...")
		os.Exit(2)
	}
	if err := compile(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintf(os.Stderr, "compile: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func compile(name, dir string, args []string) error {
	began := time.Now()
	total, err := stale(dir, args[len(args)-1])
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"build", "-v"}, args...)...)
	cmd.Dir = dir
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	d := newDisplay(name, total)
	complaints := follow(stderr, d)
	err = cmd.Wait()
	d.clear()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, complaints)
	}
	fmt.Fprintf(os.Stderr, "built %s in %.0f s\n", name, time.Since(began).Seconds())
	return nil
}

// stale counts the packages that must be compiled, and fetches modules if necessary.
func stale(dir, pkg string) (int, error) {
	d := newDisplay("modules", 0)
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", pkg)
	cmd.Dir = dir
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	complaints := follow(stderr, d)
	err = cmd.Wait()
	d.clear()
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, complaints)
	}
	return len(strings.Fields(stdout.String())), nil
}

// follow counts the packages that the go command reports, and returns all other
// output.
func follow(r io.Reader, d *display) string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			lines <- s.Text()
		}
	}()
	var complaints strings.Builder
	tick := time.NewTicker(d.interval)
	defer tick.Stop()
	for {
		select {
		case line, ok := <-lines:
			switch {
			case !ok:
				return complaints.String()
			case strings.HasPrefix(line, "go: downloading "):
				d.last = strings.TrimPrefix(line, "go: ")
			case !strings.ContainsAny(line, " #"):
				d.done, d.last = d.done+1, line
			default:
				fmt.Fprintln(&complaints, line)
			}
		case <-tick.C:
			d.show()
		}
	}
}

// display shows the progress to the user.
type display struct {
	name        string
	done, total int
	last        string
	began       time.Time
	terminal    bool
	interval    time.Duration
}

func newDisplay(name string, total int) *display {
	d := &display{name: name, total: total, began: time.Now(), interval: pipeInterval}
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("CI") != "true" {
		d.terminal, d.interval = true, terminalInterval
	}
	return d
}

func (d *display) show() {
	line := fmt.Sprintf("%s: %d:%02d", d.name, int(time.Since(d.began).Minutes()), int(time.Since(d.began).Seconds())%60)
	if d.total > 0 {
		line += fmt.Sprintf(", %d of %d packages", d.done, d.total)
	}
	if d.last != "" {
		line += ", " + d.last
	}
	line = line[:min(len(line), columns)]
	if d.terminal {
		fmt.Fprintf(os.Stderr, "\r%-*s", columns, line)
	} else {
		fmt.Fprintln(os.Stderr, line)
	}
}

func (d *display) clear() {
	if d.terminal {
		fmt.Fprintf(os.Stderr, "\r%*s\r", columns, "")
	}
}
