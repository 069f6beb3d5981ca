package controller

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "github.com/koboshi-dev/koboshi/operators/foo/api/v1alpha1"
)

var _ = Describe("Foo controller", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() {
		runOperator(AddFoo)
	})

	// create creates an object, and deletes it after the spec. An empty name is replaced by a
	// unique one.
	create := func(ctx context.Context, name, image string) *samplev1alpha1.Foo {
		GinkgoHelper()
		obj := &samplev1alpha1.Foo{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, GenerateName: "test-"},
			Spec:       samplev1alpha1.FooSpec{Image: image},
		}
		obj, err := client.SampleV1alpha1().Foos(obj.Namespace).Create(ctx, obj, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			err := client.SampleV1alpha1().Foos(obj.Namespace).Delete(ctx, obj.Name, metav1.DeleteOptions{})
			Expect(err).To(Or(BeNil(), Satisfy(apierrors.IsNotFound)))
		})
		return obj
	}

	// deployment reads the Deployment of an object.
	deployment := func(ctx context.Context, obj *samplev1alpha1.Foo) (*appsv1.Deployment, error) {
		return kubeClient.AppsV1().Deployments("default").Get(ctx, "foo-"+obj.Name, metav1.GetOptions{})
	}

	// image returns a function that reads the image in the Deployment of an object.
	image := func(ctx context.Context, obj *samplev1alpha1.Foo) func() (string, error) {
		return func() (string, error) {
			found, err := deployment(ctx, obj)
			if err != nil {
				return "", err
			}
			return found.Spec.Template.Spec.Containers[0].Image, nil
		}
	}

	// ready returns a function that reads the reason of the condition Ready, or "" if the
	// status is out of date.
	ready := func(ctx context.Context, obj *samplev1alpha1.Foo) func() (string, error) {
		return func() (string, error) {
			live, err := client.SampleV1alpha1().Foos(obj.Namespace).Get(ctx, obj.Name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			condition := meta.FindStatusCondition(live.Status.Conditions, "Ready")
			if condition == nil || live.Status.ObservedGeneration != live.Generation {
				return "", nil
			}
			return condition.Reason, nil
		}
	}

	// change changes the spec of an object.
	change := func(ctx context.Context, obj *samplev1alpha1.Foo, patch string) {
		GinkgoHelper()
		_, err := client.SampleV1alpha1().Foos(obj.Namespace).Patch(ctx, obj.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	// rollOut writes the status that the Deployment controller would write, because
	// envtest does not run that controller.
	rollOut := func(ctx context.Context, obj *samplev1alpha1.Foo) {
		GinkgoHelper()
		found, err := deployment(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		n := *found.Spec.Replicas
		found.Status = appsv1.DeploymentStatus{
			ObservedGeneration: found.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		}
		_, err = kubeClient.AppsV1().Deployments("default").UpdateStatus(ctx, found, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	It("runs the Pods in a Deployment that it owns", func(ctx SpecContext) {
		obj := create(ctx, "", "first")
		Eventually(ready(ctx, obj)).Should(Equal("Progressing"))
		found, err := deployment(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(metav1.IsControlledBy(found, obj)).To(BeTrue())
		Expect(found.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		Expect(found.Spec.Template.Spec.Containers[0].Image).To(Equal("first"))

		rollOut(ctx, obj)
		Eventually(ready(ctx, obj)).Should(Equal("Available"))
		live, err := client.SampleV1alpha1().Foos(obj.Namespace).Get(ctx, obj.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(live.Status.AvailableReplicas).To(BeEquivalentTo(1))
		Expect(meta.FindStatusCondition(live.Status.Conditions, "Reconciling")).To(BeNil())
	})

	It("announces a change of the state as an Event", func(ctx SpecContext) {
		obj := create(ctx, "", "first")
		Eventually(func() ([]string, error) {
			list, err := kubeClient.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
			var reasons []string
			for _, event := range list.Items {
				if event.Regarding.UID == obj.UID {
					reasons = append(reasons, event.Reason)
				}
			}
			return reasons, err
		}).Should(ContainElement("Progressing"))
	})

	It("runs a changed number of Pods with a changed image", func(ctx SpecContext) {
		obj := create(ctx, "", "first")
		Eventually(image(ctx, obj)).Should(Equal("first"))
		change(ctx, obj, `{"spec": {"image": "second", "replicas": 3}}`)
		Eventually(image(ctx, obj)).Should(Equal("second"))
		found, err := deployment(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Eventually(ready(ctx, obj)).Should(Equal("Progressing"))
	})

	It("repairs a Deployment that another client has changed", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		Eventually(image(ctx, obj)).Should(Equal("wanted"))
		patch := []byte(`[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "unwanted"}]`)
		_, err := kubeClient.AppsV1().Deployments("default").Patch(ctx, "foo-"+obj.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(image(ctx, obj)).Should(Equal("wanted"))
	})

	It("creates a Deployment again that another client has deleted", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		Eventually(image(ctx, obj)).Should(Equal("wanted"))
		Expect(kubeClient.AppsV1().Deployments("default").Delete(ctx, "foo-"+obj.Name, metav1.DeleteOptions{})).To(Succeed())
		Eventually(image(ctx, obj)).Should(Equal("wanted"))
	})

	It("creates no Deployment for an object that has been deleted", func(ctx SpecContext) {
		obj := create(ctx, "", "wanted")
		Eventually(image(ctx, obj)).Should(Equal("wanted"))
		Expect(client.SampleV1alpha1().Foos(obj.Namespace).Delete(ctx, obj.Name, metav1.DeleteOptions{})).To(Succeed())
		// envtest has no garbage collector, which would delete the Deployment.
		err := kubeClient.AppsV1().Deployments("default").Delete(ctx, "foo-"+obj.Name, metav1.DeleteOptions{})
		Expect(err).To(Or(BeNil(), Satisfy(apierrors.IsNotFound)))
		Consistently(func() bool {
			_, err := deployment(ctx, obj)
			return apierrors.IsNotFound(err)
		}).Should(BeTrue())
	})

	It("does not change a Deployment that belongs to another owner", func(ctx SpecContext) {
		labels := map[string]string{"app": "foreign"}
		foreign, err := kubeClient.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "foo-test-"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "foreign", Image: "foreign"}}},
				},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(kubeClient.AppsV1().Deployments("default").Delete(ctx, foreign.Name, metav1.DeleteOptions{})).To(Succeed())
		})

		obj := create(ctx, strings.TrimPrefix(foreign.Name, "foo-"), "wanted")
		Eventually(ready(ctx, obj)).Should(Equal("ApplyFailed"))
		Expect(image(ctx, obj)()).To(Equal("foreign"))
	})
})
