package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// server is a process started for the measurement.
type server struct {
	address string
	command *exec.Cmd
	log     *bytes.Buffer
	started time.Time
}

func (s *server) stop() {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	_ = s.command.Wait()
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// launch starts a server and waits until it answers.
func launch(address, path string, command *exec.Cmd) (*server, error) {
	s := &server{address: address, command: command, log: &bytes.Buffer{}, started: time.Now()}
	command.Stdout, command.Stderr = s.log, s.log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", command.Path, err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		answer, err := http.Get("http://" + address + path)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		if time.Now().After(deadline) {
			s.stop()
			return nil, fmt.Errorf("%s did not answer: %s", command, s.log)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func startViewer(binary, content string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return launch(address, "/readyz", exec.Command(binary, "--content", content, "--listen", address))
}

// startNginx starts nginx, which serves the directory root with settings from Debian's
// configuration: sendfile, and one worker per processor. Like the viewer, nginx does not compress
// on the fly and writes no access log.
func startNginx(root string) (*server, error) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		binary = "/usr/sbin/nginx"
		if _, err := os.Stat(binary); err != nil {
			return nil, fmt.Errorf("nginx is not installed, but the comparison needs it: run apt-get install nginx-light")
		}
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;\n" // only root can read the files
	}
	config := user + `worker_processes auto;
daemon off;
pid ` + root + `/nginx.pid;
error_log stderr;
events { worker_connections 768; }
http {
  sendfile on;
  tcp_nopush on;
  types { text/html html; }
  access_log off;
  keepalive_requests 10000000;
  gzip_static on;
  server { listen ` + address + `; root ` + root + `; }
}
`
	file := filepath.Join(root, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	return launch(address, "/page.html", exec.Command(binary, "-c", file, "-p", root))
}

// writePage writes a page that renders to 100 kB.
func writePage(content string) error {
	if err := os.MkdirAll(content, 0o755); err != nil {
		return err
	}
	var page strings.Builder
	page.WriteString("# A page of 100 kB\n\n")
	for n := 0; page.Len() < 78_000; n++ {
		fmt.Fprintf(&page, "## Section %d\n\n%s\n\n```go\nfunc f%d() error { return nil }\n```\n\n| a | b |\n|---|---|\n| %d | %x |\n\n",
			n, text(n, 900), n, n, n*7919)
	}
	if err := os.WriteFile(filepath.Join(content, "README.md"), []byte("# Home\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(content, "page.md"), []byte(page.String()), 0o644)
}

// text returns text of a given size whose words differ from page to page.
func text(seed, size int) string {
	words := strings.Fields("a controller reads the state of the cluster and writes what should be so that each change is seen once by whoever waits for it while the others go on with their work")
	var out strings.Builder
	for n := seed * 31; out.Len() < size; n++ {
		out.WriteString(words[(n*n+seed)%len(words)])
		out.WriteByte(' ')
	}
	return out.String()
}

// savePage saves a page as the viewer serves it, so that nginx can serve the same bytes.
func savePage(address, encoding, root string) error {
	request, err := http.NewRequest(http.MethodGet, "http://"+address+"/page.html", nil)
	if err != nil {
		return err
	}
	name := "page.html"
	if encoding != "" {
		name += ".gz"
		request.Header.Set("Accept-Encoding", encoding)
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, name), data, 0o644)
}
