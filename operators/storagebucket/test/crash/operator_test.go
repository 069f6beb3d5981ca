package crash

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega/gexec"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

// clusterID identifies the cluster in the tags that the operator writes.
const clusterID = "crash-test"

// logTail is the number of lines that logs returns from each operator's log.
const logTail = 40

// operator is the manager process, which dies and is restarted.
type operator struct {
	kubeconfig string
	namespace  string

	mu       sync.Mutex
	sessions []*gexec.Session
}

func newOperator(t *testing.T, namespace, apiServer string) *operator {
	t.Helper()
	o := &operator{namespace: namespace, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := rig.WriteKubeconfig(o.kubeconfig, apiServer, nil, ""); err != nil {
		t.Fatal(err)
	}
	return o
}

// start starts the manager if it is not running.
func (o *operator) start(t *testing.T) {
	t.Helper()
	if o.running() {
		return
	}
	session, err := rig.StartManager(o.kubeconfig, nil, "--leader-elect=false", "--namespaces="+o.namespace,
		"--cluster-id="+clusterID, "--allowed-endpoints=127.0.0.1", "--zap-log-level=1")
	if err != nil {
		t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sessions = append(o.sessions, session)
}

func (o *operator) current() *gexec.Session {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.sessions) == 0 {
		return nil
	}
	return o.sessions[len(o.sessions)-1]
}

func (o *operator) running() bool {
	s := o.current()
	return s != nil && s.ExitCode() == -1
}

// kill kills the manager, and returns when the process is dead.
func (o *operator) kill() {
	if s := o.current(); s != nil {
		<-s.Kill().Exited
	}
}

// logs returns the last lines of the last two processes.
func (o *operator) logs() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, s := range o.sessions[max(0, len(o.sessions)-2):] {
		lines := strings.Split(string(s.Err.Contents()), "\n")
		b.WriteString("--- output of one operator process\n")
		b.WriteString(strings.Join(lines[max(0, len(lines)-logTail):], "\n"))
	}
	return b.String()
}
