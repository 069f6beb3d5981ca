package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// packageName replaces the name of the measure in the bouts of the ten processes.
const packageName = "package"

const together, cores = 10, 2

// tenAtOnce measures `go test ./...` on a small machine, in a project with ten packages
// that each have a test suite.
var tenAtOnce = Measure{
	Name:    "ten",
	Timeout: 12 * time.Minute,
	Figures: []Figure{
		{Name: "ten", Label: "ten at once", Unit: "s", Note: "Ten at once: ten processes on two cores make one round trip each. The figure is the time until the last one is done; rounds with failures do not count."},
		{Name: "ten-failed", Label: "ten at once, failed"},
	},
	run: func(ctx context.Context, b Bout) (Values, error) {
		// Processes that this thread starts inherit its cores. The thread is never
		// unlocked, because it ends with the process.
		runtime.LockOSThread()
		if err := pin(cores); err != nil {
			return nil, fmt.Errorf("pinning the benchmark to %d cores: %w", cores, err)
		}
		began := time.Now()
		failed, err := b.packages(ctx)
		took := time.Since(began)
		if err != nil {
			return nil, err
		}
		v := Values{"ten-failed": float64(len(failed))}
		if len(failed) == 0 { // a package that failed may have been fast
			v["ten"] = seconds(took)
		}
		for _, reason := range failed {
			fmt.Fprintln(os.Stderr, "one of ten failed:", reason)
		}
		return v, nil
	},
}

// packages starts all packages in parallel from the calling thread, and returns the
// reason for each failure.
func (b Bout) packages(ctx context.Context) (failed []string, err error) {
	b.Measure = packageName
	told, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	for range together {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, os.Args[0], os.Args[1], string(told))
		cmd.Stderr, cmd.WaitDelay = &stderr, 2*time.Second
		// When the input of a started process ends, that process assumes that its parent has ended.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		wg.Go(func() {
			err := cmd.Wait()
			_ = stdin.Close()
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Sprintf("%v: %s", err, strings.TrimSpace(stderr.String())))
			}
		})
	}
	wg.Wait()
	return failed, ctx.Err()
}
