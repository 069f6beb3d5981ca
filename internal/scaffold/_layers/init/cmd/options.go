/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"crypto/tls"
	"flag"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// shutdownTimeout limits the time that the manager takes to stop. It is less than
// terminationGracePeriodSeconds in config/manager/manager.yaml, so that the manager can release
// its Lease before it is killed.
const shutdownTimeout = 30 * time.Second

// options holds the command line.
type options struct {
	metricsAddr     string
	metricsSecure   bool
	metricsCertPath string
	metricsCertName string
	metricsCertKey  string

	webhookPort     int
	webhookCertPath string
	webhookCertName string
	webhookCertKey  string

	probeAddr       string
	leaderElect     bool
	leaderNamespace string
	enableHTTP2     bool
}

func (o *options) bind(f *flag.FlagSet) {
	f.StringVar(&o.metricsAddr, "metrics-bind-address", "0",
		"The address of the metrics endpoint, for example :8443. 0 turns it off.")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"Serve metrics over HTTPS, only to clients that the API server authenticates and authorizes.")
	f.StringVar(&o.metricsCertPath, "metrics-cert-path", "",
		"The directory with the certificate of the metrics endpoint. "+
			"If there is no certificate, the manager creates a self-signed one.")
	f.StringVar(&o.metricsCertName, "metrics-cert-name", "tls.crt",
		"The file name of the certificate in --metrics-cert-path.")
	f.StringVar(&o.metricsCertKey, "metrics-cert-key", "tls.key",
		"The file name of the certificate's key in --metrics-cert-path.")

	f.IntVar(&o.webhookPort, "webhook-port", 9443,
		"The port of the webhooks. The environment variable ENABLE_WEBHOOKS=false turns the webhooks off.")
	f.StringVar(&o.webhookCertPath, "webhook-cert-path", "",
		"The directory with the certificate of the webhooks.")
	f.StringVar(&o.webhookCertName, "webhook-cert-name", "tls.crt",
		"The file name of the certificate in --webhook-cert-path.")
	f.StringVar(&o.webhookCertKey, "webhook-cert-key", "tls.key",
		"The file name of the certificate's key in --webhook-cert-path.")

	f.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081",
		"The address of the endpoints /healthz and /readyz. 0 turns them off.")
	f.BoolVar(&o.leaderElect, "leader-elect", false,
		"Elect a leader, so that only one of several managers is active at a time.")
	f.StringVar(&o.leaderNamespace, "leader-election-namespace", "",
		"The namespace of the Lease for leader election. Empty means the namespace of the manager's Pod.")
	f.BoolVar(&o.enableHTTP2, "enable-http2", false,
		"Serve metrics and webhooks over HTTP/2 as well.")
}

// manager returns the options of the manager.
func (o *options) manager() ctrl.Options {
	var tlsOpts []func(*tls.Config)
	if !o.enableHTTP2 {
		tlsOpts = append(tlsOpts, withoutHTTP2)
	}
	metrics := metricsserver.Options{
		BindAddress:   o.metricsAddr,
		SecureServing: o.metricsSecure,
		CertDir:       o.metricsCertPath,
		CertName:      o.metricsCertName,
		KeyName:       o.metricsCertKey,
		TLSOpts:       tlsOpts,
	}
	if o.metricsSecure {
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return ctrl.Options{
		Scheme:  scheme,
		Metrics: metrics,
		WebhookServer: webhook.NewServer(webhook.Options{
			Port:     o.webhookPort,
			CertDir:  o.webhookCertPath,
			CertName: o.webhookCertName,
			KeyName:  o.webhookCertKey,
			TLSOpts:  tlsOpts,
		}),
		HealthProbeBindAddress: o.probeAddr,
		LeaderElection:         o.leaderElect,
		// config/rbac/leader_election_role.yaml contains the same name.
		LeaderElectionID:        "exampleproject.koboshi.example",
		LeaderElectionNamespace: o.leaderNamespace,
		// This setting is safe only while the process exits as soon as the manager stops.
		// With it, the next leader need not wait until the Lease expires.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(shutdownTimeout),
	}
}

// ready returns the readiness check. A manager with a certificate for webhooks is ready
// when its webhook server responds.
func (o *options) ready(mgr ctrl.Manager) healthz.Checker {
	if o.webhookCertPath == "" {
		return healthz.Ping
	}
	return mgr.GetWebhookServer().StartedChecker()
}

// withoutHTTP2 turns HTTP/2 off, because of the vulnerabilities GHSA-qppj-fm5r-hxr3 and
// GHSA-4374-p667-p6c8.
func withoutHTTP2(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }
