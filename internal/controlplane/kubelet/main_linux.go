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
		_, _ = fmt.Fprintln(os.Stderr, "koboshi: the kubelet is started by koboshi up; use koboshi up --run IMAGE=PATH")
		return 2
	}
	var c Config
	config := json.NewDecoder(lifeline)
	if err := config.Decode(&c); err != nil {
		return 1 // the parent has already ended
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
		klog.Background().Error(err, "The kubelet cannot go on")
		return 1
	}
	return 0
}

// goodbye is the time that programs have to end when the plane does. After that
// the kernel ends them with this process, the first of its pid namespace.
const goodbye = 1500 * time.Millisecond

// inherited returns the pipes that Start created, or nil.
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
	}
	if told := json.NewEncoder(reports).Encode(r); err == nil {
		err = told
	}
	if err != nil {
		return err
	}
	_ = reports.Close()
	// Upstream's kubelet does not stop when its context ends: the process exits
	// instead.
	go n.run(context.WithoutCancel(ctx))
	go memory.Settle(ctx)
	return runtime.Run(ctx)
}

// errPowerless reports namespaces in which nothing may be mounted.
var errPowerless = errors.New("nothing may be mounted")

// begin performs the steps that fail immediately or never.
func (c Config) begin(ctx context.Context) (*node, *cri.Runtime, error) {
	// Mounts made here must not appear outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errPowerless, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, nil, fmt.Errorf("%w: /proc: %w", errPowerless, err)
	}
	// Programs start in koboshi up's working directory, so the runtime is
	// created first.
	runtime, err := c.newRuntime()
	if err != nil {
		return nil, nil, err
	}
	// Upstream removes a container's logs by a pattern, which is relative when
	// the log path is unknown: here it matches nothing.
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
