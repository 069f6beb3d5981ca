package measure

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/bench/internal/footprint"
)

// up measures `koboshi up` with everything it can run, compared with stock's two
// programs.
var up = Measure{
	Name:    "up",
	Timeout: 4 * time.Minute,
	Figures: []Figure{
		{Name: "up", Label: "up, full", Unit: "s", Note: "Up, full: koboshi up --profile full --ephemeral until /readyz returns 200, with all controllers, the" +
			" scheduler and a node. The figure for stock is the time to start envtest, which runs none of these."},
		{Name: "up-rss", Label: "up, full, RSS", Unit: "MB"},
	},
	run: func(ctx context.Context, b Bout) (v Values, err error) {
		before, err := footprint.InMemory()
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if b.stock() {
			env := b.environment()
			if _, err := env.Start(); err != nil {
				return nil, fmt.Errorf("starting the environment: %w", err)
			}
			defer env.stop(&err)
		} else {
			end, err := b.up(ctx)
			if err != nil {
				return nil, err
			}
			defer end()
		}
		ready := time.Since(began)
		used, err := b.settled(ctx, before)
		return Values{"up": seconds(ready), "up-rss": megabytes(used.RSS)}, err
	},
}

// up starts the program and returns when it is ready. The port is chosen
// in advance, so that readiness can be polled rather than read from the output.
func (b Bout) up(ctx context.Context) (end func(), err error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	var output bytes.Buffer
	cmd := exec.Command(b.Binary, "up", "--die-with-parent", "--profile=full", "--ephemeral", "--port="+port)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = os.TempDir(), &output, &output, 2*time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	end = func() { _ = cmd.Process.Signal(syscall.SIGTERM); <-exited }
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !answers(ctx, "https://127.0.0.1:"+port+"/readyz") {
		select {
		case <-exited:
			return nil, fmt.Errorf("koboshi up ended: %s", output.String())
		case <-ctx.Done():
			end()
			return nil, fmt.Errorf("koboshi up did not become ready within %s: %s", startTimeout, output.String())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return end, nil
}

func answers(ctx context.Context, url string) bool {
	// The certificate is not checked, because it does not matter here.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
