// Command checked is the controller that the tests of koboshi check run.
// It keeps two children for each Widget, and reports their size in the Widget's status:
//
//	Widget demo ──▶ ConfigMap demo-first, ConfigMap demo-second ──▶ status.size
//
// The environment selects a bug:
//
//	BUG=first-exists   if the first child exists, it assumes that both do
//	BUG=no-owner       the children have no owner
//	BUG=flip           it writes a different first child each time
//	BUG=count          it writes a new count into the status four times a second, forever
//	BUG=panic          it panics when the API server returns an internal error
//	BUG=exit           it exits immediately
//	BUG=crash          it panics when there is a Widget
//	BUG=deaf           it does not watch the children
//	RESYNC=DURATION    it reconciles all Widgets at this interval
//	SECRET=NAME        the children are Secrets with the token from Secret NAME
//
// The message of each panic quotes the token and the variable PLANTED.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

var (
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

func main() {
	// The controller runs until it is killed or fails.
	fmt.Fprintln(os.Stderr, "checked:", run(context.Background()))
	os.Exit(1)
}

func run(ctx context.Context) error {
	c := &controller{bug: os.Getenv("BUG"), source: os.Getenv("SECRET"), resource: configMaps, kind: "ConfigMap"}
	if c.bug == "exit" {
		return errors.New("the controller exits, because BUG is set to exit")
	}
	if c.source != "" {
		c.resource, c.kind = secrets, "Secret"
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	if c.client, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](10*time.Millisecond, time.Second))
	if err := c.watch(ctx); err != nil {
		return err
	}
	if c.bug == "count" {
		go c.count(ctx)
	}
	for {
		name, _ := c.queue.Get()
		if c.bug == "crash" {
			panic("a Widget that it cannot handle")
		}
		err := c.reconcile(ctx, name)
		if c.bug == "panic" && apierrors.IsInternalError(err) {
			token, _ := base64.StdEncoding.DecodeString(c.token)
			panic(fmt.Sprintf("unexpected internal error; token %s, PLANTED %s", token, os.Getenv("PLANTED")))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

type controller struct {
	client   dynamic.Interface
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	bug      string
	source   string
	token    string                      // of the Secret source, in base64
	resource schema.GroupVersionResource // the resource of the children
	kind     string
}

// watch reconciles Widgets when they or their children change.
func (c *controller) watch(ctx context.Context) error {
	resync, _ := time.ParseDuration(os.Getenv("RESYNC")) // 0, no resync, if it is not set
	factory := dynamicinformer.NewDynamicSharedInformerFactory(c.client, resync)
	for _, resource := range []schema.GroupVersionResource{widgets, c.resource} {
		if c.bug == "deaf" && resource != widgets {
			continue
		}
		see := func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			u := object.(*unstructured.Unstructured)
			name := u.GetName()
			if resource != widgets {
				name = u.GetLabels()["widget"]
			}
			if name != "" {
				c.queue.Add(types.NamespacedName{Namespace: u.GetNamespace(), Name: name})
			}
		}
		_, err := factory.ForResource(resource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: see, UpdateFunc: func(_, now any) { see(now) }, DeleteFunc: see,
		})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

// reconcile reads the current state from the server, not from a cache.
func (c *controller) reconcile(ctx context.Context, name types.NamespacedName) error {
	widget, err := c.client.Resource(widgets).Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || widget.GetDeletionTimestamp() != nil {
		return err
	}
	content, err := c.content(ctx, widget)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"-first", "-second"} {
		was, err := c.ensure(ctx, widget, name.Name+suffix, content)
		if err != nil {
			return err
		}
		if was && c.bug == "first-exists" {
			break
		}
	}
	return c.report(ctx, widget)
}

// content returns the content of the children.
func (c *controller) content(ctx context.Context, widget *unstructured.Unstructured) (map[string]any, error) {
	if c.source == "" {
		size, _, err := unstructured.NestedString(widget.Object, "spec", "size")
		return map[string]any{"size": size}, err
	}
	source, err := c.client.Resource(secrets).Namespace(widget.GetNamespace()).Get(ctx, c.source, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	c.token, _, err = unstructured.NestedString(source.Object, "data", "token")
	return map[string]any{"token": c.token}, err
}

// ensure brings a child to its declared state, and reports whether it already was in that
// state.
func (c *controller) ensure(ctx context.Context, widget *unstructured.Unstructured, name string, content map[string]any) (bool, error) {
	children := c.client.Resource(c.resource).Namespace(widget.GetNamespace())
	child, err := children.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = children.Create(ctx, c.child(widget, name, content), metav1.CreateOptions{})
		return false, err
	}
	if err != nil {
		return false, err
	}
	flips := c.bug == "flip" && name == widget.GetName()+"-first"
	if is, _, _ := unstructured.NestedMap(child.Object, "data"); maps.Equal(is, content) && !flips {
		return true, nil
	}
	child.Object["data"] = content
	if flips {
		other := map[string]string{"": "heads", "heads": "tails", "tails": "heads"}
		child.SetAnnotations(map[string]string{"coin": other[child.GetAnnotations()["coin"]]})
	}
	_, err = children.Update(ctx, child, metav1.UpdateOptions{})
	return false, err
}

func (c *controller) child(widget *unstructured.Unstructured, name string, content map[string]any) *unstructured.Unstructured {
	child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": c.kind, "data": content}}
	child.SetName(name)
	child.SetLabels(map[string]string{"widget": widget.GetName()})
	if c.bug != "no-owner" {
		child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(widget, widget.GroupVersionKind())})
	}
	return child
}

// report writes the size of the children into the Widget's status.
func (c *controller) report(ctx context.Context, widget *unstructured.Unstructured) error {
	size, _, _ := unstructured.NestedString(widget.Object, "spec", "size")
	if was, _, _ := unstructured.NestedString(widget.Object, "status", "size"); was == size {
		return nil
	}
	if err := unstructured.SetNestedField(widget.Object, size, "status", "size"); err != nil {
		return err
	}
	_, err := c.client.Resource(widgets).Namespace(widget.GetNamespace()).UpdateStatus(ctx, widget, metav1.UpdateOptions{})
	return err
}

// count writes a new status again and again: often enough that the controller never seems
// idle, but too rarely for a hot loop.
func (c *controller) count(ctx context.Context) {
	n := 0
	for range time.Tick(250 * time.Millisecond) {
		n++
		patch := fmt.Appendf(nil, `{"status":{"count":%d}}`, n)
		_, err := c.client.Resource(widgets).Namespace("default").Patch(ctx, "demo", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil && !apierrors.IsNotFound(err) {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
