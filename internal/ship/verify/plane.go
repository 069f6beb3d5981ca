package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/koboshi-dev/koboshi/internal/check/output"
)

const (
	// toStart limits how long a plane may take to start, also on a busy machine.
	toStart = 2 * time.Minute
	// outputTail is the number of bytes kept from the end of what the plane prints.
	outputTail = 4 << 10
)

// plane is a control plane with all controllers, in another process. The Pods of the operator are processes.
type plane struct {
	cmd        *exec.Cmd
	dir        string
	kubeconfig string
	ended      chan struct{}
}

// startPlane returns once the plane is ready.
func startPlane(ctx context.Context, o Options) (*plane, error) {
	dir, err := os.MkdirTemp("", "koboshi-verify-")
	if err != nil {
		return nil, err
	}
	p := &plane{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), ended: make(chan struct{})}
	readyFile := filepath.Join(dir, "ready")
	args := []string{
		"up", "--profile", "full", "--ephemeral", "--die-with-parent", "--ready-file", readyFile, "--kubeconfig", p.kubeconfig,
		"--run", o.Image + "=" + o.Layout,
	}
	if o.Old != nil && o.Old.Image != o.Image { // both versions may have the same code
		args = append(args, "--run", o.Old.Image+"="+o.Old.Layout)
	}
	p.cmd = exec.Command(o.Koboshi, args...)
	said := output.NewTail(outputTail)
	p.cmd.Stdout, p.cmd.Stderr = said, said
	if err := p.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	go func() { defer close(p.ended); _ = p.cmd.Wait() }()
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, toStart, true, func(context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, errors.New(strings.TrimSpace(said.String()))
		default:
		}
		_, err := os.Stat(readyFile)
		return err == nil, nil
	})
	if err != nil {
		p.stop()
		if wait.Interrupted(err) && ctx.Err() == nil {
			err = fmt.Errorf("it is not ready after %s: %s", toStart, strings.TrimSpace(said.String()))
		}
		return nil, err
	}
	return p, nil
}

// stop ends the plane.
func (p *plane) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.ended
	_ = os.RemoveAll(p.dir)
}
