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

// Main is the kubelet's process, as Start makes it. It returns the exit code.
func Main() int {
	lifeline, reports := inherited()
	if lifeline == nil {
		_, _ = fmt.Fprintln(os.Stderr, "koboshi: the kubelet is started by koboshi up; use koboshi up --run IMAGE=PATH")
		return 2
	}
	var c Config
	config := json.NewDecoder(lifeline)
	if err := config.Decode(&c); err != nil {
		return 1 // whoever started this has ended already
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

// goodbye is how long programs have to end when the plane does. The kernel ends
// those that are left with this process, the first of its pid namespace.
const goodbye = 1500 * time.Millisecond

// inherited returns the pipes that Start made, or nil.
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
	// Upstream's kubelet does not end with a context: the process ends.
	go n.run(context.WithoutCancel(ctx))
	go memory.Settle(ctx)
	return runtime.Run(ctx)
}

// errPowerless reports namespaces in which nothing may be mounted.
var errPowerless = errors.New("nothing may be mounted")

// begin does what fails at once or not at all.
func (c Config) begin(ctx context.Context) (*node, *cri.Runtime, error) {
	// What is mounted here must not be seen outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errPowerless, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, nil, fmt.Errorf("%w: /proc: %w", errPowerless, err)
	}
	// Programs start where koboshi up did, and so the runtime is made first.
	runtime, err := c.newRuntime()
	if err != nil {
		return nil, nil, err
	}
	// Upstream removes the logs of a container by a pattern, which is relative
	// when it knows no path of them: here it finds nothing.
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
