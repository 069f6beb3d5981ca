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
	"flag"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// options holds the command line.
type options struct {
	kubeconfig string

	metricsAddr     string
	metricsSecure   bool
	metricsCertPath string
	metricsCertName string
	metricsCertKey  string

	probeAddr       string
	leaderElect     bool
	leaderNamespace string
}

func (o *options) bind(f *flag.FlagSet) {
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"The kubeconfig. Empty means $KUBECONFIG, ~/.kube/config, or the service account of the manager's Pod.")

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

	f.StringVar(&o.probeAddr, "health-probe-bind-address", ":8081",
		"The address of the endpoints /healthz and /readyz. 0 turns them off.")
	f.BoolVar(&o.leaderElect, "leader-elect", false,
		"Elect a leader, so that only one of several managers is active at a time.")
	f.StringVar(&o.leaderNamespace, "leader-election-namespace", "",
		"The namespace of the Lease for leader election. Empty means the namespace of the manager's Pod.")
}

// config returns the configuration of the clients.
func (o *options) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	// The API server limits its clients itself, by API Priority and Fairness.
	config.QPS = -1
	return config, nil
}
