package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/controller"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/notify"
)

// addNotify adds the endpoint for notifications from stores, unless the endpoint is
// turned off.
func addNotify(mgr ctrl.Manager, o options, controllers *controller.Controllers) error {
	if off(o.notifyAddr) {
		return nil
	}
	if o.notifyCertDir == "" && !isLoopback(o.notifyAddr) {
		return fmt.Errorf("--notify-bind-address=%s is not a loopback address, but --notify-cert-dir is not set: "+
			"use a loopback address such as 127.0.0.1:9443, or provide a certificate", o.notifyAddr)
	}
	err := mgr.Add(&notify.Server{
		Address:    o.notifyAddr,
		CertDir:    o.notifyCertDir,
		TokenFile:  o.notifyTokenFile,
		Config:     mgr.GetConfig(),
		HTTPClient: mgr.GetHTTPClient(),
		Poke:       controllers.Poke,
		Buckets:    controllers.Buckets,
	})
	if err != nil {
		return fmt.Errorf("adding the notification endpoint: %w", err)
	}
	return nil
}
