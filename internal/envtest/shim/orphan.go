package shim

import (
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/internal/freeport"
)

// parent was this process's parent when the package was initialized. On a busy machine, the package
// is initialized 50 ms or more after exec. If the suite ends in those 50 ms, parent is the process
// that adopts orphans, not the suite.
var parent = os.Getppid()

const parentPoll = 100 * time.Millisecond

// Orphaned returns a channel that is closed when the process that started this server has
// ended and the server must therefore end too:
//   - If envtest started the server, the channel is closed when the suite has ended or no
//     longer holds the lock on the port's reservation.
//   - If nohup, setsid or an init process started the server, the channel is never closed.
//   - If a shell, a script or another program started the server, the channel is closed
//     when that process has ended.
//
// Checking the lock involves no race, because the kernel releases the lock of a process
// before it gives the children to another parent. A suite that chooses its ports itself
// reserves none. If no port is reserved, a parent in another session cannot be the suite,
// because envtest starts its servers in the session of the suite. If KeepVariable is set,
// the channel is never closed.
var Orphaned = sync.OnceValue(func() <-chan struct{} { return orphaned(Called(), os.Args[1:]) })

// IsOrphaned reports whether the channel of Orphaned is closed.
func IsOrphaned() bool {
	select {
	case <-Orphaned():
		return true
	default:
		return false
	}
}

func orphaned(name string, args []string) <-chan struct{} {
	ended := make(chan struct{})
	if os.Getenv(KeepVariable) != "" {
		return ended
	}
	end := sync.OnceFunc(func() { close(ended) })
	reservation := freeport.Find(servedPort(name, args))
	byEnvtest := reservation != nil || leftover(name, args) != ""
	switch {
	case reservation != nil && !reservation.Held(), reservation == nil && byEnvtest && adopted():
		end()
		return ended
	case !byEnvtest && detached():
		return ended
	case reservation != nil:
		go func() {
			reservation.AwaitEnd()
			end()
		}()
	}
	go func() {
		awaitParentsEnd()
		end()
	}()
	return ended
}

// detached reports whether the process was started to outlive its parent, or whether its
// parent is an init process.
func detached() bool {
	return parent <= 1 || sessionOf(0) == os.Getpid() || signal.Ignored(syscall.SIGHUP)
}

// adopted reports whether the parent cannot be the process that started this one.
func adopted() bool {
	own := sessionOf(0)
	return parent > 0 && own != os.Getpid() && sessionOf(parent) != own
}

// pollParent waits until another process has become the parent.
func pollParent() {
	for os.Getppid() == parent {
		<-time.After(parentPoll)
	}
}

// servedPort returns the port that envtest has chosen for the server, or 0.
func servedPort(name string, args []string) int {
	if name == Etcd {
		return Port(Flag(args, "listen-client-urls"))
	}
	port, _ := strconv.ParseUint(Flag(args, "secure-port"), 10, 16)
	return int(port)
}

// leftover returns the folder that envtest made for the server and normally removes after stopping
// the server. The result is "" if the user chose the folder.
func leftover(name string, args []string) string {
	dir := Flag(args, map[string]string{Etcd: "data-dir", APIServer: "cert-dir"}[name])
	if strings.HasPrefix(filepath.Base(dir), "k8s_test_framework_") {
		return dir
	}
	return ""
}

// RemoveLeftover removes the folder that envtest made for the server. RemoveLeftover is called when
// envtest has ended and can no longer remove the folder.
func RemoveLeftover(name string) {
	if dir := leftover(name, os.Args[1:]); dir != "" {
		_ = os.RemoveAll(dir)
	}
}
