package contract

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func etcdClient(t *testing.T, env *envtest.Environment) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{env.ControlPlane.Etcd.URL.String()}, DialTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func createConfigMap(t *testing.T, c kubernetes.Interface, name string) *corev1.ConfigMap {
	t.Helper()
	made, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const stored = "/registry/configmaps/default/"

func TestAnEtcdClientSeesAndChangesWhatTheAPIServes(t *testing.T) {
	env := start(t)
	etcd, c := etcdClient(t, env), clientset(t, env.Config)
	events := etcd.Watch(t.Context(), stored, clientv3.WithPrefix())
	made := createConfigMap(t, c, "seen")

	got, err := etcd.Get(t.Context(), stored+"seen")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 {
		t.Fatalf("etcd holds %d keys %s, want one", len(got.Kvs), stored+"seen")
	}
	if revision := fmt.Sprint(got.Kvs[0].ModRevision); revision != made.ResourceVersion {
		t.Errorf("the resourceVersion is %s and etcd's revision %s", made.ResourceVersion, revision)
	}
	select {
	case e := <-events:
		if len(e.Events) == 0 || string(e.Events[0].Kv.Key) != stored+"seen" || !e.Events[0].IsCreate() {
			t.Errorf("the watch delivered %v: %v, want the creation of %s", e.Events, e.Err(), stored+"seen")
		}
	case <-time.After(within):
		t.Error("the watch delivered nothing")
	}
	if _, err := etcd.Delete(t.Context(), stored+"seen"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deletion in etcd, through the API", func(ctx context.Context) error {
		_, err := c.CoreV1().ConfigMaps("default").Get(ctx, "seen", metav1.GetOptions{})
		return wantNotFound(err)
	})
	if _, err := etcd.Put(t.Context(), "/mine/key", strings.Repeat("v", 1000)); err != nil {
		t.Errorf("a key of the user's own: %v", err)
	}
}

func wantNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%v, want that the object is not found", err)
}

func TestASecondAPIServerSharesTheStore(t *testing.T) {
	env := start(t)
	createConfigMap(t, clientset(t, env.Config), "shared")
	second := &envtest.ControlPlane{APIServer: &envtest.APIServer{
		EtcdURL: env.ControlPlane.Etcd.URL, Path: env.ControlPlane.APIServer.Path, StartTimeout: 3 * time.Minute,
	}}
	if err := second.APIServer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.APIServer.Stop(); err != nil {
			t.Error(err)
		}
	})
	user, err := second.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := clientset(t, user.Config())
	if _, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "shared", metav1.GetOptions{}); err != nil {
		t.Errorf("through the second server: %v", err)
	}
	createConfigMap(t, c, "by-the-second")
	if _, err := clientset(t, env.Config).CoreV1().ConfigMaps("default").Get(t.Context(), "by-the-second", metav1.GetOptions{}); err != nil {
		t.Errorf("through the first server: %v", err)
	}
}

func TestARestartedAPIServerServesWhatItsEtcdHolds(t *testing.T) {
	env := start(t)
	made := createConfigMap(t, clientset(t, env.Config), "kept")
	server := env.ControlPlane.APIServer
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	// A restarted API server has new certificates, so it also needs a new user.
	user, err := env.AddUser(envtest.User{Name: "again", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientset(t, user.Config()).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.UID != made.UID || got.ResourceVersion != made.ResourceVersion {
		t.Errorf("the object is now %s at %s and was %s at %s", got.UID, got.ResourceVersion, made.UID, made.ResourceVersion)
	}
}

func TestAnEtcdThatReturnsServesTheLivingAPIServer(t *testing.T) {
	dir := t.TempDir()
	var stderr output
	env := start(t, func(env *envtest.Environment) {
		// Stop does not remove a folder that the test provides. Because a goroutine reads
		// the output, Stop waits until no process can write to the output any more.
		env.ControlPlane.Etcd = &envtest.Etcd{DataDir: dir, Err: &stderr}
	})
	c := clientset(t, env.Config)
	made := createConfigMap(t, c, "kept")
	etcd := env.ControlPlane.Etcd
	if err := etcd.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the object, after etcd was away", func(ctx context.Context) error {
		got, err := c.CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
		if err == nil && got.UID != made.UID {
			return fmt.Errorf("the object has the UID %s, want %s", got.UID, made.UID)
		}
		return err
	})
	eventually(t, "a write, after etcd was away", func(ctx context.Context) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "new-"}}
		_, err := c.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}
