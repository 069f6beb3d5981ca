package contract

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const controllersVariable = "KOBOSHI_CONTROLLERS"

func TestNamedControllersRun(t *testing.T) {
	oursOnly(t)
	t.Setenv(controllersVariable, "gc,namespace,deployment")
	c := clientset(t, start(t).Config)
	ctx := t.Context()
	populate(t, c)
	if err := c.CoreV1().Namespaces().Delete(ctx, "away", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a Deployment's Pods are Ready", func(ctx context.Context) error {
		d, err := c.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && d.Status.ReadyReplicas != 2 {
			err = fmt.Errorf("%d replicas are Ready", d.Status.ReadyReplicas)
		}
		return err
	})
	eventually(t, "the namespace is gone", func(ctx context.Context) error {
		_, err := c.CoreV1().Namespaces().Get(ctx, "away", metav1.GetOptions{})
		return gone(err)
	})
	eventually(t, "an object without an existing owner is collected", func(ctx context.Context) error {
		_, err := c.CoreV1().ConfigMaps("default").Get(ctx, "orphan", metav1.GetOptions{})
		return gone(err)
	})
}

func TestWithoutNamesSuitesMayPatchStatusAndInventOwners(t *testing.T) {
	c := clientset(t, start(t).Config)
	ctx := t.Context()
	populate(t, c)
	d, err := c.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Status.ReadyReplicas, d.Status.Replicas = 2, 2
	if _, err := c.AppsV1().Deployments("default").UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// After a few hundred writes, everything must still be as the suite left it.
	for i := range 200 {
		_, err := c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("filler-", i)}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.CoreV1().ConfigMaps("default").Get(ctx, "orphan", metav1.GetOptions{}); err != nil {
		t.Errorf("an object with an invented owner: %v", err)
	}
	if d, err = c.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{}); err != nil || d.Status.ReadyReplicas != 2 {
		t.Errorf("a status set by hand is %+v (%v)", d.Status, err)
	}
	pods, err := c.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("%d Pods (%v), want none", len(pods.Items), err)
	}
}

func TestAWrongControllerIsRefusedWithTheNearestRightOne(t *testing.T) {
	oursOnly(t)
	t.Setenv(controllersVariable, "namspace")
	var told bytes.Buffer
	env := newEnvironment()
	env.ControlPlane.Etcd = &envtest.Etcd{}
	env.ControlPlane.GetAPIServer().Err = &told
	_, err := env.Start()
	if err == nil {
		t.Error("the environment started")
	}
	_ = env.Stop()
	if !strings.Contains(told.String(), `did you mean "namespace-controller"?`) {
		t.Errorf("the API server printed %q", &told)
	}
}

// populate creates objects that controllers would act on.
func populate(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	replicas := int32(2)
	labels := map[string]string{"app": "web"}
	_, err := c.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never-was", UID: "11111111-1111-1111-1111-111111111111"}
	_, err = c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "orphan", OwnerReferences: []metav1.OwnerReference{owner}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "away"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CoreV1().ConfigMaps("away").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func gone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("it is still there")
	}
	return err
}
