package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// StartManager starts the manager. The previous manager must have ended.
func (r *Rig) StartManager(ctx context.Context) error {
	program, err := Program("MANAGER", "bin", "manager")
	if err != nil {
		return err
	}
	args := append([]string{
		"--viewer-image=" + Image,
		"--metrics-bind-address=" + r.Metrics[len("http://"):len(r.Metrics)-len("/metrics")], "--metrics-secure=false",
		"--health-probe-bind-address=" + r.health,
		"--webhook-port=" + strconv.Itoa(r.webhooks.port), "--webhook-cert-dir=" + r.webhooks.dir,
	}, r.options.ManagerArgs...)
	if r.Manager, err = r.run("manager", program, []string{"KUBECONFIG=" + r.Kubeconfig}, args...); err != nil {
		return err
	}
	return r.Manager.ready(ctx, r.options.Log, func(ctx context.Context) error {
		return ok(ctx, "http://"+r.health+"/readyz")
	})
}

// ok returns an error unless a request to the URL succeeds.
func ok(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// firstPort differs widely between processes with neighboring IDs. portsTried counts the ports
// that this process has tried.
var (
	firstPort  = int64(os.Getpid()) * 7919
	portsTried atomic.Int64
)

// freeAddresses returns unused loopback addresses. The ports are below those that Linux chooses for
// other programs (from 32768), so no other program takes one of them before the manager does. All
// listeners stay open until the last address is chosen, so that all addresses differ.
func freeAddresses(count int) ([]string, error) {
	var all []string
	for len(all) < count {
		port := 20000 + (firstPort+portsTried.Add(1))%10000
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer func() { _ = l.Close() }()
		all = append(all, l.Addr().String())
	}
	return all, nil
}
