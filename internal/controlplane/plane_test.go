package controlplane

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

const within = 2 * time.Minute // enough for a busy machine; usually it takes a second

// inOwnProcess runs the calling test in a separate process, since a process can run only one plane.
// inOwnProcess returns true in the separate process, and false in the calling process.
func inOwnProcess(t *testing.T) bool {
	t.Helper()
	const marker = "KOBOSHI_TEST_OWN_PROCESS"
	if os.Getenv(marker) != "" {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.v", "-test.count=1", "-test.run=^" + regexp.QuoteMeta(t.Name()) + "$"}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), marker+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func TestPlaneRunsUntilItIsStopped(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	plane := start(ctx, t, Options{})
	cancel() // ctx limits only the start
	if plane.URL() == "" {
		t.Error("no URL")
	}
	client := adminClient(t, plane)
	for _, path := range []string{"/readyz", "/livez"} {
		if got := getRaw(t, client, path); got != "ok" {
			t.Errorf("%s answers %q", path, got)
		}
	}
	if got := getRaw(t, client, "/version"); !strings.Contains(got, `"gitVersion": "v`+kubeversion.Version+`"`) {
		t.Errorf("/version answers %s", got)
	}

	if _, err := Start(t.Context(), Options{}); !errors.Is(err, ErrSecondPlane) {
		t.Errorf("Start beside a running plane: %v, want ErrSecondPlane", err)
	}
	select {
	case <-plane.Failed():
		t.Error("Failed is closed, but no component has failed")
	default:
	}
	if got := getRaw(t, client, "/readyz"); got != "ok" {
		t.Errorf("after that /readyz answers %q", got)
	}

	kubeconfig := plane.Kubeconfig()
	begun := time.Now()
	if err := plane.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	// Some of upstream's components would wait a minute for open connections.
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("Stop took %v", took)
	}
	if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context()); err == nil {
		t.Error("the stopped plane answers")
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !os.IsNotExist(err) {
		t.Errorf("the stopped plane's folder: %v, want that it is gone", err)
	}
	if _, err := Start(t.Context(), Options{}); !errors.Is(err, ErrSecondPlane) {
		t.Errorf("Start after a plane: %v, want ErrSecondPlane", err)
	}
	if left := ephemeralFolders(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestFailureOfAComponentEndsThePlaneAndIsTold(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	plane := start(t.Context(), t, Options{DataDir: filepath.Join(t.TempDir(), "data")})
	fell := errors.New("fell over")
	plane.goComponent(schedulerName, func(context.Context) error { return fell })
	select {
	case <-plane.Failed():
	case <-time.After(within):
		t.Error("Failed is still open")
	}
	err := plane.Stop()
	if !errors.Is(err, fell) {
		t.Fatalf("Stop: %v, want %v", err, fell)
	}
	for _, part := range []string{schedulerName, plane.logs.Path(schedulerName)} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("Stop: %v, want it to name %s", err, part)
		}
	}
}

func TestComponentThatEndsWithoutAnErrorHasFailed(t *testing.T) {
	t.Parallel()
	p := &Plane{tasks: newTasks(t.Context())}
	p.goComponent("kube-scheduler", func(context.Context) error { return nil })
	<-p.Failed()
	if err := p.tasks.stop(); err == nil || !strings.Contains(err.Error(), "ended unexpectedly") {
		t.Errorf("%v, want that it ended unexpectedly", err)
	}
}

func TestStartThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	plane, err := Start(ctx, Options{})
	if err == nil {
		t.Skip("the plane started before it could be interrupted")
	}
	if plane != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Start: %v, %v, want the error that it was canceled", plane, err)
	}
	if left := ephemeralFolders(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestWrongUseIsToldAndLeavesNothingBehind(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	external := ExternalEtcd{Servers: []string{"https://127.0.0.1:1"}, CAFile: filepath.Join(t.TempDir(), "none.crt")}
	for _, test := range []struct {
		name    string
		options Options
		is      func(error) bool
		says    string
	}{
		{"port taken", Options{Port: port}, as[*PortError], strconv.Itoa(port)},
		{"etcd without its certificate", Options{Etcd: external}, as[*StoreError], "none.crt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dataDir := filepath.Join(t.TempDir(), "data")
			for _, dir := range []string{"", dataDir} {
				test.options.DataDir = dir
				plane, err := Start(t.Context(), test.options)
				if plane != nil || err == nil || !test.is(err) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("Start in %q: %v, %v", dir, plane, err)
				}
			}
			if left := ephemeralFolders(t); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			d, err := datadir.Open(dataDir, kubeversion.Version)
			if err != nil {
				t.Fatalf("the data directory cannot be opened: %v", err)
			}
			if d.Marker().Initialized {
				t.Error("the marker of the data directory claims that there is a store")
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStartTellsWhichFlagOfTheAPIServerIsWrong(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	_, err := Start(t.Context(), Options{APIServerFlags: []string{"--no-such-flag=1"}})
	if !errors.As(err, new(*apiserver.FlagError)) || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("Start: %v, want a FlagError that names no-such-flag", err)
	}
	if left := ephemeralFolders(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func as[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

func start(ctx context.Context, t *testing.T, o Options) *Plane {
	t.Helper()
	var err error
	if o.Profile, err = controllers.Lookup("api"); err != nil {
		t.Fatal(err)
	}
	plane, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return plane
}

func adminClient(t *testing.T, plane *Plane) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func getRaw(t *testing.T, client *kubernetes.Clientset, path string) string {
	t.Helper()
	data, err := client.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return string(data)
}

// ephemeralFolders lists the folders that this process created, and omits those
// that other processes created in the same places.
func ephemeralFolders(t *testing.T) []string {
	t.Helper()
	var ours []string
	for _, base := range []string{os.TempDir(), "/dev/shm"} {
		locks, err := filepath.Glob(filepath.Join(base, "koboshi-ephemeral-*", "lock"))
		if err != nil {
			t.Fatal(err)
		}
		for _, lock := range locks {
			holder, err := os.ReadFile(lock)
			if err == nil && strings.TrimSpace(string(holder)) == strconv.Itoa(os.Getpid()) {
				ours = append(ours, filepath.Dir(lock))
			}
		}
	}
	return ours
}

func TestClientInTheProcessIsWhoItsCertificateOrTokenSays(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	plane := start(ctx, t, Options{})
	admin, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	nobody := rest.AnonymousClientConfig(admin)
	stranger := rest.CopyConfig(nobody)
	stranger.BearerToken = "unknown"
	for want, config := range map[string]*rest.Config{"kubernetes-admin": admin, "system:anonymous": nobody, "Unauthorized": stranger} {
		way, err := plane.InProcess(config)
		if err != nil {
			t.Fatal(err)
		}
		if way, err = rest.HTTPWrappersForConfig(config, way); err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: way})
		if err != nil {
			t.Fatal(err)
		}
		got := "Unauthorized"
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		switch {
		case err == nil:
			got = review.Status.UserInfo.Username
		case apierrors.IsForbidden(err): // which names the user
			got = regexp.MustCompile(`User "(.*?)"`).FindStringSubmatch(err.Error())[1]
		case !apierrors.IsUnauthorized(err):
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("the server identified a client as %q, want %q", got, want)
		}
	}
}
