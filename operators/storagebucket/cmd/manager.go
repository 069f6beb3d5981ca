package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/certificates"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/controller"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
)

// shutdownTimeout limits how long the manager waits for work in progress when it has to
// stop. It is shorter than the Pod's terminationGracePeriodSeconds, so that the lease
// is released before the process is killed.
const shutdownTimeout = 8 * time.Second

const (
	// kindsTimeout limits the wait for the CRDs at startup.
	kindsTimeout = 30 * time.Second
	kindsPoll    = 200 * time.Millisecond
)

// run builds the manager and runs it until the context ends.
func run(ctx context.Context, o options) error {
	if o.await != "" {
		return runAwait(ctx, o)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	if err := waitForKinds(ctx, config); err != nil {
		return err
	}
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, o); err != nil {
		return err
	}
	if o.webhookPort != 0 {
		if err := ctrl.NewWebhookManagedBy(mgr, &storagev1.StorageBucket{}).Complete(); err != nil {
			return fmt.Errorf("setting up the conversion webhook: %w", err)
		}
	}
	if err := addHealthChecks(mgr, o); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// waitForKinds waits until the API server serves the kinds of the operator, because the
// manager may start while its CRDs are being installed.
func waitForKinds(ctx context.Context, config *rest.Config) error {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("creating the discovery client: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, kindsPoll, kindsTimeout, true, func(context.Context) (bool, error) {
		before := last
		if last = served(api, "ObjectStore", "StorageBucket"); last != nil && before == nil {
			ctrl.Log.Info("waiting for the CRDs", "reason", last.Error())
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not serve the kinds of the operator (install the CRDs: make install): %w", last)
	}
	return nil
}

// served returns an error if the API server does not serve all of the kinds.
func served(api discovery.ServerResourcesInterface, kinds ...string) error {
	list, err := api.ServerResourcesForGroupVersion(storagev1.GroupVersion.String())
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind }) {
			return fmt.Errorf("%s has no kind %s", storagev1.GroupVersion, kind)
		}
	}
	return nil
}

func newManager(config *rest.Config, o options) (ctrl.Manager, error) {
	metricsOptions, err := o.metricsOptions()
	if err != nil {
		return nil, err
	}
	pprofAddress, err := o.pprofAddress()
	if err != nil {
		return nil, err
	}
	managerOptions := ctrl.Options{
		Scheme:                  newScheme(),
		Cache:                   controller.CacheOptions(split(o.namespaces)...),
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: controller.UncachedObjects()}},
		Metrics:                 metricsOptions,
		HealthProbeBindAddress:  o.healthProbeAddr,
		PprofBindAddress:        pprofAddress,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        "storagebucket.storage.koboshi.dev",
		LeaderElectionNamespace: o.leaderNamespace,
		// Releasing the lease is safe because the process ends when the manager does. The next
		// leader then does not have to wait for the lease to expire.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(shutdownTimeout),
	}
	if o.webhookPort != 0 {
		managerOptions.WebhookServer = certificates.NewServer(webhook.Options{
			Port: o.webhookPort, CertDir: o.webhookCertDir, TLSOpts: []func(*tls.Config){withoutHTTP2},
		}, o.webhookCertificate)
	}
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	return mgr, nil
}

// newScheme registers only the kinds that the manager reads and writes, and not all
// kinds of Kubernetes, because every type costs memory.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(storagev1.AddToScheme(scheme))
	utilruntime.Must(storagev1alpha1.AddToScheme(scheme))
	return scheme
}

func addControllers(ctx context.Context, mgr ctrl.Manager, o options) error {
	storeOptions, err := o.storeOptions()
	if err != nil {
		return err
	}
	cluster, err := clusterID(ctx, mgr.GetAPIReader(), o.clusterID)
	if err != nil {
		return err
	}
	controllers, err := controller.Setup(ctx, mgr, controller.Options{
		Stores:        storeOptions,
		MaxConcurrent: o.maxConcurrent,
		Heartbeat:     o.heartbeat,
		Cluster:       cluster,
		Namespaces:    split(o.namespaces),
		Clock:         clock.RealClock{},
	})
	if err != nil {
		return fmt.Errorf("setting up the controllers: %w", err)
	}
	metrics.RegisterBuildInfo()
	metrics.RegisterBuckets(mgr.GetClient())
	return addNotify(mgr, o, controllers)
}

// clusterID returns the ID of this cluster for the tags of buckets. The UID
// of kube-system never changes, and no two clusters share it.
func clusterID(ctx context.Context, reader client.Reader, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	var ns corev1.Namespace
	if err := reader.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &ns); err != nil {
		return "", fmt.Errorf("reading the UID of the namespace kube-system (set --cluster-id to avoid this): %w", err)
	}
	return string(ns.UID), nil
}

// addHealthChecks adds the health checks. A manager that serves a webhook is not ready
// until the webhook answers.
func addHealthChecks(mgr ctrl.Manager, o options) error {
	ready := healthz.Ping
	if o.webhookPort != 0 {
		ready = mgr.GetWebhookServer().StartedChecker()
	}
	if err := errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", ready)); err != nil {
		return fmt.Errorf("adding health checks: %w", err)
	}
	return nil
}
