package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri"
	"github.com/koboshi-dev/koboshi/internal/memory"
)

// Called reports whether this program was called as a kubelet.
func Called() bool { return len(os.Args) == 2 && os.Args[1] == Verb }

// Main runs the kubelet in the process that Start creates. It returns the exit
// code.
func Main() int {
	lifeline, reports := inherited()
	if lifeline == nil {
		_, _ = fmt.Fprintln(os.Stderr, "koboshi: only koboshi up can start the kubelet; use koboshi up --run IMAGE=PATH")
		return 2
	}
	var c Config
	config := json.NewDecoder(lifeline)
	if err := config.Decode(&c); err != nil {
		return 1 // the parent process has already ended
	}
	klog.SetLogger(clog.Klog(os.Stderr, c.Verbosity))
	memory.Starting()
	ctx, end := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, lifeline)
		end()
		<-time.After(goodbye)
		os.Exit(1)
	}()
	if err := c.run(ctx, reports); err != nil {
		klog.Background().Error(err, "The kubelet cannot continue")
		return 1
	}
	return 0
}

// goodbye is the time that programs have to stop when the plane stops, before
// this process exits. When this process exits, the kernel kills all programs,
// because the process is the first of its pid namespace.
const goodbye = 1500 * time.Millisecond

// inherited returns the pipes that Start created, or nil if there are none.
func inherited() (lifeline, reports *os.File) {
	for _, fd := range []int{lifelineFD, reportFD} {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return nil, nil
		}
		unix.CloseOnExec(fd)
	}
	return os.NewFile(lifelineFD, "lifeline"), os.NewFile(reportFD, "report")
}

func (c Config) run(ctx context.Context, reports io.WriteCloser) error {
	n, runtime, err := c.begin(ctx)
	r := report{}
	if err != nil {
		r = report{Error: err.Error(), Forbidden: errors.Is(err, errPowerless)}
	} else {
		r.Port = int(n.config.Port)
	}
	if told := json.NewEncoder(reports).Encode(r); err == nil {
		err = told
	}
	if err != nil {
		return err
	}
	_ = reports.Close()
	// Upstream's kubelet does not stop when its context ends, so it is stopped
	// only by the exit of the process.
	go n.run(context.WithoutCancel(ctx))
	go memory.Settle(ctx)
	return runtime.Run(ctx)
}

// errPowerless reports that the process may not mount anything in its
// namespaces.
var errPowerless = errors.New("mounting is not allowed")

// begin performs the steps that can fail; such a step fails either immediately
// or never.
func (c Config) begin(ctx context.Context) (*node, *cri.Runtime, error) {
	// Mounts in this namespace must not appear outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errPowerless, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, nil, fmt.Errorf("%w: /proc: %w", errPowerless, err)
	}
	// The runtime is created before the working directory changes, because
	// programs start in the working directory of koboshi up.
	runtime, err := c.newRuntime()
	if err != nil {
		return nil, nil, err
	}
	// Upstream removes the logs of a container by a pattern. If the log path is
	// unknown, the pattern is relative, and in this empty folder it matches
	// nothing.
	work := filepath.Join(c.Root, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, nil, err
	}
	if err := os.Chdir(work); err != nil {
		return nil, nil, err
	}
	n, err := c.newNode(ctx, runtime)
	return n, runtime, err
}
