package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/certificates"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/controller"
)

const (
	leaseName = "markdownview.view.koboshi.dev"
	// shutdownTimeout is less than the Pod's terminationGracePeriodSeconds (15 in
	// config/manager), so that the lease is released before the process is killed.
	shutdownTimeout = 8 * time.Second
	// kindTimeout limits the wait for the CRD at startup.
	kindTimeout = 30 * time.Second
	kindPoll    = 200 * time.Millisecond
)

// run builds the manager and runs it until the context ends.
func run(ctx context.Context, o options) error {
	controllerOptions, err := o.controllerOptions()
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	if err := waitForKind(ctx, config); err != nil {
		return err
	}
	mgr, err := newManager(config, o)
	if err != nil {
		return err
	}
	if err := addWebhooks(mgr, o, &controllerOptions); err != nil {
		return err
	}
	if err := controller.Setup(mgr, controllerOptions); err != nil {
		return fmt.Errorf("setting up the controller: %w", err)
	}
	if err := addHealthChecks(mgr, o); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the manager: %w", err)
	}
	return nil
}

// waitForKind waits until the API server serves MarkdownViews, because the manager may
// start while its CRD is being installed.
func waitForKind(ctx context.Context, config *rest.Config) error {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("creating the discovery client: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, kindPoll, kindTimeout, true, func(context.Context) (bool, error) {
		_, last = api.ServerResourcesForGroupVersion(viewv1.GroupVersion.String())
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not serve MarkdownViews (install the CRD: make install): %w", last)
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
	namespaces, err := o.watched()
	if err != nil {
		return nil, err
	}
	if o.oldNamespaces != "" {
		ctrl.Log.Info("--watch-namespaces is deprecated: use --namespaces")
	}
	managerOptions := ctrl.Options{
		Scheme:                  newScheme(),
		Cache:                   controller.CacheOptions(namespaces...),
		Metrics:                 metricsOptions,
		HealthProbeBindAddress:  o.healthProbeAddr,
		PprofBindAddress:        pprofAddress,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        leaseName,
		LeaderElectionNamespace: o.leaderNamespace,
		// It is safe to release the lease at once, because the process ends with the
		// manager. The next leader need not wait until the lease expires.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(shutdownTimeout),
	}
	if o.webhooks {
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

// newScheme returns a scheme with only the types in use, because each type costs memory.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme,
		gatewayv1.Install, viewv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// addHealthChecks adds the probes. A manager with webhooks is ready when the webhooks
// respond.
func addHealthChecks(mgr ctrl.Manager, o options) error {
	ready := healthz.Ping
	if o.webhooks {
		ready = mgr.GetWebhookServer().StartedChecker()
	}
	if err := errors.Join(mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("readyz", ready)); err != nil {
		return fmt.Errorf("adding health checks: %w", err)
	}
	return nil
}
