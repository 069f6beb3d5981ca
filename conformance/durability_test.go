package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

const (
	killRounds  = 10
	killWriters = 1000 // one write each, all at once
)

// The seed in the variable KOBOSHI_SEED repeats the kills of an earlier run.
func TestEveryAcknowledgedWriteOutlivesKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("KOBOSHI_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("KOBOSHI_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	p := startPlane(t, "--profile=api")
	book := newLedger()
	for round := range killRounds {
		killAfter := 1 + random.IntN(killWriters-1)
		book.writeAndKill(t, p, round, killAfter)
		p = startPlaneIn(t, p.dir, "--profile=api")
		book.compare(t, p)
		t.Logf("round %d: killed after %d acknowledged writes; %d objects kept", round, killAfter, len(book.acknowledged))
		if t.Failed() {
			return
		}
	}
}

func TestSignalsEndAPlaneWithOpenWatchesCleanly(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			p := startPlane(t)
			for range 20 {
				p.watchConfigMaps(t, "", metav1.ListOptions{})
			}
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			p.mustExit(t, 0)
		})
	}
}

func TestPlaneDiesWithItsParentWhenAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	up := strings.Join(append([]string{koboshi, "up", "--profile=api", "--die-with-parent", "--ready-file=" + ready}, extraArgs()...), " ")
	parent := exec.Command("sh", "-c", up+" & wait")
	parent.Dir, parent.Stdout = dir, &bytes.Buffer{}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var plane struct{ PID int }
	eventually(t, "the plane to be ready", func(context.Context) error {
		data, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(data, &plane)
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Wait returns when no process holds the pipe, which means that the plane and its
	// parent are gone.
	gone := make(chan struct{})
	go func() { _ = parent.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(within):
		t.Errorf("the plane is still running %v after its parent ended", within)
		if err := syscall.Kill(plane.PID, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		<-gone
	}
}

func TestSecondStartOnADataDirectoryIsRefusedAndNamesTheHolder(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--profile=api")
	holder := strconv.Itoa(p.cmd.Process.Pid)
	mustRefuse(t, p.dir, "is in use by process "+holder, "--profile=api")
	if _, err := p.client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("after the refusal the first plane answers %v", err)
	}
}

func TestRestartedPlaneKeepsItsPort(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--profile=api")
	before := p.config.Host
	p.stop()
	p = startPlaneIn(t, p.dir, "--profile=api")
	if p.config.Host != before {
		t.Errorf("the server was at %s and is at %s", before, p.config.Host)
	}
}

// The path of a data directory may contain any characters. Some of the names in this test
// have a special meaning in a pattern, in a URL or for etcd, and the long path exceeds the
// limit for a socket.
func TestDataDirectoryMayHaveAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "p[1]", "a,b", "100%", "q?#", strings.Repeat("long", 30)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startPlane(t, "--profile=api", "--data-dir="+name)
			p.create(t, "default", "precious")
			p.stop()
			again := startPlaneIn(t, p.dir, "--profile=api", "--data-dir="+name)
			if _, err := again.client.CoreV1().ConfigMaps("default").Get(t.Context(), "precious", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadyFileOfAKilledPlaneIsGoneAtTheNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ready := filepath.Join(dir, "stale")
	writeFile(t, ready, "{}")
	// The ready file exists before the start. The plane gets far enough to remove the ready file,
	// and then fails.
	mustRefuse(t, dir, "--kube-apiserver-arg", "--ephemeral", "--ready-file="+ready, "--kube-apiserver-arg=no-such-flag=1")
	if _, err := os.Stat(ready); err == nil {
		t.Error("a script would take the stale file for readiness")
	}
}

// The nodes outlive the process, but the port of their kubelet changes.
func TestLogsAreAnsweredAfterARestart(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--profile=workloads")
	p.kubectl(t, "run", "web", "--image=nginx")
	p.kubectl(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=30s")
	p.kill()
	again := startPlaneIn(t, p.dir, "--profile=workloads")
	if out := again.kubectl(t, "logs", "web"); !strings.Contains(out, "is simulated") {
		t.Errorf("logs after the restart: %q", out)
	}
}

func TestKubectlEndsAtTheFirstSignal(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	cmd := exec.Command(koboshi, "kubectl", "proxy", "--port=0", "--kubeconfig="+p.kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err) // kubectl proxy prints a line when it is ready
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(within):
		t.Error("kubectl proxy is still running")
	}
}

func TestPortInUseIsRefused(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	mustRefuse(t, t.TempDir(), "choose another --port", "--port="+port)
}

func TestUnusableDataDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "file"), "")
	writeFile(t, filepath.Join(dir, "full", "notes.txt"), "not ours")
	for name, c := range map[string]struct{ path, says string }{
		"a file":                  {"file", "is not a directory; choose another --data-dir"},
		"below a file":            {"file/below", "is not a directory; choose another --data-dir"},
		"not ours":                {"full", "so Koboshi did not create it; choose an empty or new --data-dir"},
		"where no user may write": {"/proc/koboshi", "--data-dir"},
		"existing, unwritable":    {"/proc/self", "--data-dir"},
	} {
		t.Run(name, func(t *testing.T) {
			before := contents(t, dir)
			mustRefuse(t, dir, c.says, "--data-dir="+c.path)
			mustBeUnchanged(t, before, contents(t, dir))
		})
	}
}

func TestForbiddenDataDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "locked"), 0o500); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, dir, "change its permissions, or choose another --data-dir", "--data-dir=locked")
}

// damages lists kinds of damage to a data directory. The exit code is 1 if etcd
// itself finds the damage and ends the process.
var damages = []struct {
	name   string
	damage func(t *testing.T, dir string)
	says   string
}{
	{"marker of a newer format", func(t *testing.T, dir string) {
		editMarker(t, dir, func(m map[string]any) { m["format"] = 1000 })
	}, "was written by a newer version"},
	{"marker of a newer Kubernetes", func(t *testing.T, dir string) {
		editMarker(t, dir, func(m map[string]any) { m["kubernetes"] = "1.999.0" })
	}, "was written by a newer version"},
	{"marker without a format", func(t *testing.T, dir string) {
		editMarker(t, dir, func(m map[string]any) { delete(m, "format") })
	}, "koboshi.json has no format number"},
	{"marker is garbage", func(t *testing.T, dir string) { overwrite(t, dir, "koboshi.json", 0) }, "koboshi.json cannot be read"},
	{"marker is gone", func(t *testing.T, dir string) { remove(t, dir, "koboshi.json") }, "koboshi.json"},
	{"log is gone", func(t *testing.T, dir string) { remove(t, dir, "etcd/member/wal") }, "etcd/member/wal is missing"},
	{"log is garbage", func(t *testing.T, dir string) { overwrite(t, dir, "etcd/member/wal/*.wal", 0) }, "etcd"},
	{"log is garbage in the middle", func(t *testing.T, dir string) {
		overwrite(t, dir, "etcd/member/wal/*.wal", record(t, only(t, dir, "etcd/member/wal/*.wal"))+24)
	}, "etcd"},
	// If the garbage began at the length of a record, etcd would take that record for a write that
	// was cut off by a power failure.
	{"log is garbage from the length of a record on", func(t *testing.T, dir string) {
		overwrite(t, dir, "etcd/member/wal/*.wal", record(t, only(t, dir, "etcd/member/wal/*.wal")))
	}, "etcd/member/wal can be read up to entry"},
	{"log is empty", func(t *testing.T, dir string) { truncate(t, dir, "etcd/member/wal/*.wal", 0) }, "etcd"},
	{"store is gone", func(t *testing.T, dir string) { remove(t, dir, "etcd") }, "etcd/member/wal is missing"},
	{"database is gone", func(t *testing.T, dir string) { remove(t, dir, "etcd/member/snap/db") }, "etcd/member/snap/db is missing"},
	{"database is garbage", func(t *testing.T, dir string) { overwrite(t, dir, "etcd/member/snap/db", 0) }, "etcd/member/snap/db cannot be read"},
	{"database is cut off", func(t *testing.T, dir string) { truncate(t, dir, "etcd/member/snap/db", 20480) }, "etcd/member/snap/db is truncated"},
	{"database is empty", func(t *testing.T, dir string) { truncate(t, dir, "etcd/member/snap/db", 0) }, "etcd/member/snap/db"},
	{"authority's key is gone", func(t *testing.T, dir string) { remove(t, dir, "pki/ca.key") }, "pki/ca.key is missing"},
	{"authority's key is empty", func(t *testing.T, dir string) { truncate(t, dir, "pki/ca.key", 0) }, "ca.key"},
	{"tokens' key is gone", func(t *testing.T, dir string) { remove(t, dir, "pki/sa.key") }, "pki/sa.key is missing"},
}

func TestDamagedDataDirectoryIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--profile=api")
	p.create(t, "default", "precious")
	p.stop()
	good := os.DirFS(filepath.Join(p.dir, ".koboshi"))
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			dir := t.TempDir()
			data := filepath.Join(dir, ".koboshi")
			copyTree(t, data, good)
			d.damage(t, data)
			before := contents(t, data)
			mustRefuse(t, dir, d.says, "--profile=api")
			mustBeUnchanged(t, before, contents(t, data))
		})
	}
}

func TestWrongUseIsRefusedWithTheNextAction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, says string }{
		{"--profile=workload", `did you mean "workloads"?`},
		{"--profile=nonsense", "api, gc, workloads, full"},
		{"--controllers=-deploymnt", `did you mean "deployment-controller"?`},
		{"--controllers=+garbage-colector", `did you mean "garbage-collector-controller"?`},
		{"--prot=6443", "koboshi up --help"},
		{"--nodes=three", "koboshi up --help"},
		{"--nodes=-1", "--nodes"},
		{"--port=65536", "--port"},
		{"--ephemeral --data-dir=x", "use only one of them"},
		{"--data-dir=", "name a folder, or use --ephemeral"},
		{"folder", "koboshi up --help"},
		{"--ephemeral --kube-apiserver-arg=no-such-flag=1", "--kube-apiserver-arg"},
		{"--ephemeral --kube-apiserver-arg=secure-port=1", "koboshi uses --port"},
		{"--ephemeral --kubeconfig=/dev/null/x", "choose another file"},
		{"--etcd-servers=nonsense", "is not a URL"},
		{"--etcd-cafile=x", "need --etcd-servers"},
	} {
		t.Run(c.args, func(t *testing.T) {
			dir := t.TempDir()
			mustRefuse(t, dir, c.says, strings.Fields(c.args)...)
			mustBeUnchanged(t, nil, contents(t, dir))
		})
	}
}

func TestKubeconfigKeepsTheOtherClustersOfItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	other := clientcmdapi.NewConfig()
	other.Clusters["other"] = &clientcmdapi.Cluster{Server: "https://other.example.com"}
	other.AuthInfos["other"] = &clientcmdapi.AuthInfo{Token: "other"}
	other.Contexts["other"] = &clientcmdapi.Context{Cluster: "other", AuthInfo: "other"}
	other.CurrentContext = "other"
	if err := clientcmd.WriteToFile(*other, path); err != nil {
		t.Fatal(err)
	}
	p := startPlaneIn(t, dir, "--profile=api", "--kubeconfig=config")
	merged, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if merged.Clusters["other"] == nil || merged.AuthInfos["other"] == nil || merged.Contexts["other"] == nil {
		t.Errorf("the other cluster is lost: %v", merged)
	}
	if merged.CurrentContext == "other" || merged.Clusters["other"].Server != "https://other.example.com" {
		t.Errorf("the context is %s, the other cluster is at %s", merged.CurrentContext, merged.Clusters["other"].Server)
	}
	if _, err := p.client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("with the context of the merged kubeconfig, the plane answers %v", err)
	}
}

func TestKubeconfigIsReadableByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	writeFile(t, path, "") // the mode of an existing file must be corrected too
	startPlaneIn(t, dir, "--profile=api", "--kubeconfig=config")
	for _, file := range []string{path, sharedPlane(t).kubeconfig} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v; want 0600", filepath.Base(file), info.Mode().Perm())
		}
	}
}

func TestUnreadableKubeconfigIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	writeFile(t, path, "{ not a kubeconfig")
	code, stderr := up(t, dir, "--profile=api", "--kubeconfig=config")
	if code == 0 || !strings.Contains(stderr, "it is left unchanged") {
		t.Errorf("exit code %d, standard error:\n%s", code, stderr)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "{ not a kubeconfig" {
		t.Errorf("the file holds %q, error %v", data, err)
	}
}

// ledger records the writes that the API server acknowledged. It also records writes that
// may have been stored although no response arrived.
type ledger struct {
	mu           sync.Mutex
	acknowledged map[string]string // content by name
	attempted    map[string]string // the one write in flight, by name
	highest      uint64            // the highest acknowledged resource version
}

func newLedger() *ledger {
	return &ledger{acknowledged: map[string]string{}, attempted: map[string]string{}}
}

// writeAndKill sends all writes concurrently and kills the plane as soon as killAfter of
// them are acknowledged.
func (l *ledger) writeAndKill(t *testing.T, p *plane, round, killAfter int) {
	t.Helper()
	var (
		writers sync.WaitGroup
		acks    = make(chan struct{}, killWriters)
	)
	// The messages of clients that lose their connection are of no interest.
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	for i := range killWriters {
		writers.Go(func() {
			if l.write(ctx, p, round, i) == nil {
				acks <- struct{}{}
			}
		})
	}
	for range killAfter {
		select {
		case <-acks:
		case <-time.After(3 * within): // a thousand writers share the machine with other tests
			t.Fatalf("no write was acknowledged within %v", 3*within)
		}
	}
	p.kill()
	writers.Wait()
}

// write creates an object. If the writer's number is even, write instead changes the object
// that this writer created in the first round.
func (l *ledger) write(ctx context.Context, p *plane, round, writer int) error {
	name, content := fmt.Sprintf("writer-%d-%d", writer, round), fmt.Sprintf("round %d", round)
	if writer%2 == 0 {
		name = fmt.Sprintf("writer-%d", writer)
	}
	l.mu.Lock()
	_, exists := l.acknowledged[name]
	l.attempted[name] = content
	l.mu.Unlock()

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"content": content}}
	client := p.client.CoreV1().ConfigMaps("default")
	var err error
	if exists {
		cm, err = client.Update(ctx, cm, metav1.UpdateOptions{})
	} else {
		cm, err = client.Create(ctx, cm, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	rv, err := strconv.ParseUint(cm.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[name] = content
	delete(l.attempted, name)
	l.highest = max(l.highest, rv)
	return nil
}

// compare checks the store against the ledger, and then records the stored objects as
// acknowledged.
func (l *ledger) compare(t *testing.T, p *plane) {
	t.Helper()
	list, err := p.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{}
	for _, cm := range list.Items {
		content := cm.Data["content"]
		stored[cm.Name] = content
		if content != l.acknowledged[cm.Name] && content != l.attempted[cm.Name] {
			t.Errorf("%s holds %q, which was not the last write", cm.Name, content)
		}
	}
	for name, content := range l.acknowledged {
		if _, ok := stored[name]; !ok {
			t.Errorf("%s with %q was acknowledged and is gone", name, content)
		}
	}
	if rv := number(t, list.ResourceVersion); rv < l.highest {
		t.Errorf("resource version %d was acknowledged; the store is at %d", l.highest, rv)
	}
	l.acknowledged, l.attempted = stored, map[string]string{}
}

func extraArgs() []string { return strings.Fields(os.Getenv("KOBOSHI_UP_ARGS")) }

// up runs koboshi up, which must end by itself with these arguments.
func up(t *testing.T, dir string, args ...string) (code int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, koboshi, append([]string{"up", "--die-with-parent"}, args...)...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("koboshi up %s is still running; standard error:\n%s", strings.Join(args, " "), &out)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// mustRefuse checks that koboshi up ends with a usage error, which is exit code 2 and
// one line with the next action.
func mustRefuse(t *testing.T, dir, says string, args ...string) {
	t.Helper()
	code, stderr := up(t, dir, args...)
	if code != 2 {
		t.Errorf("exit code %d; want 2", code)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "koboshi: ") || !strings.Contains(stderr, says) {
		t.Errorf("standard error is not one line with %q:\n%s", says, stderr)
	}
}

func (p *plane) mustExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		t.Fatalf("koboshi up is still running after %v", within)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d; want %d\n%s", got, code, p.output)
	}
}

// contents maps the files in dir to hashes of their content. It skips logs, the lock and
// issued certificates, which a refused start may write; nothing else may change.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "logs" || entry.Name() == "run"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || entry.Name() == "lock" || isIssued(path):
			return nil
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = fmt.Sprintf("%d bytes, %x", len(data), sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isIssued reports whether every start issues the file again. The keys of the two
// authorities and of the service accounts are created once.
func isIssued(path string) bool {
	name, ok := strings.CutPrefix(path, "pki/")
	return ok && !slices.ContainsFunc([]string{"ca.", "front-proxy-ca.", "sa."}, func(once string) bool {
		return strings.HasPrefix(name, once)
	})
}

func mustBeUnchanged(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, was := range before {
		if is := after[path]; is != was {
			t.Errorf("%s had %s and has %q", path, was, is)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}

// copyTree copies the regular files, but no sockets.
func copyTree(t *testing.T, to string, from fs.FS) {
	t.Helper()
	err := fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		data, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func editMarker(t *testing.T, dir string, edit func(map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, "koboshi.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var marker map[string]any
	if err := json.Unmarshal(data, &marker); err != nil {
		t.Fatal(err)
	}
	edit(marker)
	if data, err = json.Marshal(marker); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(data))
}

func remove(t *testing.T, dir, path string) {
	t.Helper()
	path = filepath.Join(dir, path)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// only returns the path of the file that matches pattern, and fails the test unless exactly one
// file matches.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, error %v", pattern, found, err)
	}
	return found[0]
}

// record returns the offset of a record in a file of etcd's log. It skips the first and
// the smallest records. The first eight bytes of a record hold its length and padding.
func record(t *testing.T, path string) int64 {
	t.Helper()
	const least, beyond = 64, 4096
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at+8 < int64(len(log)); {
		frame := binary.LittleEndian.Uint64(log[at:])
		size, padding := int64(frame&(1<<56-1)), int64(0)
		if frame>>63 == 1 {
			padding = int64(frame >> 56 & 7)
		}
		if size == 0 {
			break
		}
		if at > beyond && size > least {
			return at
		}
		at += 8 + size + padding
	}
	t.Fatalf("%s has no record of %d bytes after the first %d", path, least, beyond)
	return 0
}

// overwrite puts garbage into a file, starting at offset.
func overwrite(t *testing.T, dir, pattern string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(only(t, dir, pattern), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte("garbage "), 2048), offset); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func truncate(t *testing.T, dir, pattern string, size int64) {
	t.Helper()
	if err := os.Truncate(only(t, dir, pattern), size); err != nil {
		t.Fatal(err)
	}
}
