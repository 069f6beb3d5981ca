package rig

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// startPlane starts a control plane.
func (r *Rig) startPlane(ctx context.Context) error {
	koboshi, err := Program("KOBOSHI", "..", "..", "bin", "koboshi")
	if err != nil {
		return err
	}
	ready := filepath.Join(r.dir, "ready")
	r.Kubeconfig = filepath.Join(r.dir, "kubeconfig")
	args := []string{
		"up", "--profile", "full", "--ephemeral", "--die-with-parent", "--nodes", strconv.Itoa(max(1, r.options.Nodes)),
		// The default range has only enough addresses for 254 Services.
		"--kube-apiserver-arg=service-cluster-ip-range=10.0.0.0/16",
		"--ready-file", ready, "--kubeconfig", r.Kubeconfig,
	}
	programs, err := r.programs()
	if err != nil {
		return err
	}
	if r.Plane, err = r.run("koboshi", koboshi, nil, append(args, programs...)...); err != nil {
		return err
	}
	if err := r.Plane.ready(ctx, r.options.Log, exists(ready)); err != nil {
		return err
	}
	return r.connect()
}

// programs returns the flags that map images to programs.
func (r *Rig) programs() ([]string, error) {
	if r.options.Simulated {
		return nil, nil
	}
	viewer, err := Program("VIEWER", "bin", "viewer")
	if err != nil {
		return nil, err
	}
	flags := []string{"--run", Image + "=" + viewer}
	for _, image := range slices.Sorted(maps.Keys(r.options.Programs)) {
		flags = append(flags, "--run", image+"="+r.options.Programs[image])
	}
	return flags, nil
}

func (r *Rig) connect() error {
	var err error
	if r.Config, err = clientcmd.BuildConfigFromFlags("", r.Kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	r.Config.QPS = -1                                      // the client must not throttle what a test measures
	r.Config.WarningHandlerWithContext = rest.NoWarnings{} // some tests cause warnings
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return fmt.Errorf("listing the kinds: %w", err)
	}
	if err := viewv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("listing the kinds: %w", err)
	}
	if r.WithWatch, err = client.NewWithWatch(r.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	return nil
}

// install installs the CRD, and the webhook configurations for the manager, which starts
// later.
func (r *Rig) install(ctx context.Context) error {
	crds, err := FromRoot("config", "crd", "bases")
	if err != nil {
		return err
	}
	options := envtest.CRDInstallOptions{Paths: []string{crds}, ErrorIfPathMissing: true, MaxTime: startLimit}
	if _, err := envtest.InstallCRDs(r.Config, options); err != nil {
		return fmt.Errorf("installing the CRD: %w", err)
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return err
	}
	r.Metrics, r.health = "http://"+addresses[0]+"/metrics", addresses[1]
	if r.webhooks, err = newWebhooks(r.dir, addresses[2]); err != nil {
		return err
	}
	return r.webhooks.install(ctx, r)
}

var reachableAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// Address waits until a site can be reached, and returns the address from the plane's Event for
// the Service.
func (r *Rig) Address(ctx context.Context, limit time.Duration, view *viewv1.MarkdownView) (address string, err error) {
	return r.ServiceAddress(ctx, limit, view.Namespace, "viewer-"+view.Name)
}

// ServiceAddress is like Address, for any Service.
func (r *Rig) ServiceAddress(ctx context.Context, limit time.Duration, namespace, name string) (address string, err error) {
	err = Await(ctx, limit, "an address of Service "+name, func(ctx context.Context) error {
		var service corev1.Service
		if err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service); err != nil {
			return err
		}
		var events corev1.EventList
		if err := r.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range events.Items {
			e := &events.Items[i]
			if e.Reason == "Reachable" && e.InvolvedObject.UID == service.UID {
				address = reachableAt.FindString(e.Message)
			}
		}
		if address == "" {
			return fmt.Errorf("no Event reports that the Service is reachable")
		}
		return nil
	})
	return address, err
}
