package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/certificates"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/content"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/controller"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/overrides"
)

// viewerImage is the default of --viewer-image. The Makefile sets it to the manager's
// image, which contains both the manager and the viewer.
var viewerImage = ""

// options holds the command line.
type options struct {
	metricsAddr     string
	metricsSecure   bool
	metricsCertDir  string
	metricsCertName string
	metricsCertKey  string
	healthProbeAddr string
	pprofAddr       string
	leaderElect     bool
	leaderNamespace string
	namespaces      string
	oldNamespaces   string
	maxConcurrent   int

	viewerImage      string
	viewerRequests   string
	viewerLimits     string
	allowedImages    string
	authorOverrides  string
	contentLimit     int
	progressDeadline time.Duration

	webhookPort    int
	webhookCertDir string
	// webhookCertificate is used instead of the certificate in webhookCertDir.
	webhookCertificate certificates.Options
	// webhooks is false if ENABLE_WEBHOOKS is "false".
	webhooks bool
}

func (o *options) bind(f *flag.FlagSet) {
	f.StringVar(&o.metricsAddr, "metrics-bind-address", "0",
		"The address of the metrics endpoint, for example :8443. 0 turns it off.")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"Serve metrics over HTTPS, only to clients that the API server authenticates and authorizes. "+
			"If false, only a loopback address is accepted.")
	f.StringVar(&o.metricsCertDir, "metrics-cert-dir", "",
		"The directory with the certificate for the metrics endpoint, so that scrapers can verify it. "+
			"If empty, the manager creates a self-signed certificate at each start.")
	f.StringVar(&o.metricsCertName, "metrics-cert-name", "tls.crt", "The file name of the certificate in --metrics-cert-dir.")
	f.StringVar(&o.metricsCertKey, "metrics-cert-key", "tls.key", "The file name of the certificate's key in --metrics-cert-dir.")
	f.StringVar(&o.healthProbeAddr, "health-probe-bind-address", "0",
		"The address of the /healthz and /readyz endpoints, for example :8081. 0 turns them off.")
	f.StringVar(&o.pprofAddr, "pprof-bind-address", "0",
		"The loopback address of Go's profiles, for example 127.0.0.1:6060. 0 turns them off.")
	f.BoolVar(&o.leaderElect, "leader-elect", false,
		"Elect a leader, so that only one of several managers is active at a time.")
	f.StringVar(&o.leaderNamespace, "leader-election-namespace", "",
		"The namespace of the lease for leader election. Empty means the namespace of the manager's Pod.")
	f.StringVar(&o.namespaces, "namespaces", "",
		"The namespaces to watch, separated by commas. Empty means all.")
	f.StringVar(&o.oldNamespaces, "watch-namespaces", "",
		"Deprecated: use --namespaces.")
	f.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 4,
		"The number of sites that are reconciled at the same time.")

	f.StringVar(&o.viewerImage, "viewer-image", viewerImage,
		"The image of the viewers of all MarkdownViews that name no image. If it changes, the new image is rolled out to all of these viewers.")
	f.StringVar(&o.viewerRequests, "viewer-requests", "cpu=10m,memory=32Mi",
		"The resource requests of each viewer of a MarkdownView that sets no resources.")
	f.StringVar(&o.viewerLimits, "viewer-limits", "memory=256Mi",
		"The resource limits of each viewer of a MarkdownView that sets no resources.")
	f.StringVar(&o.allowedImages, "allowed-viewer-images", "",
		"The images that the field viewerImage may name, separated by commas. "+
			"* matches any text without a slash, and ** matches any text; * alone allows all images. "+
			"If empty, viewerImage may name no image.")
	f.StringVar(&o.authorOverrides, "author-overrides", overrides.Default,
		"The fields, separated by commas, with which authors may change how a site is exposed and scheduled: "+
			strings.Join(overrides.Fields(), ", ")+". FIELD=PATTERN allows only some keys or values, such as "+
			"ingress.annotations=cert-manager.io/*. * alone allows all fields; empty allows none.")
	f.IntVar(&o.contentLimit, "content-limit", content.DefaultLimit,
		"The maximum total size of the files of a site, in bytes.")
	f.DurationVar(&o.progressDeadline, "progress-deadline", 5*time.Minute,
		"The maximum time for viewers to become Ready before the MarkdownView is Degraded.")

	f.IntVar(&o.webhookPort, "webhook-port", 9443,
		"The port of the webhooks. The environment variable ENABLE_WEBHOOKS=false turns them off.")
	f.StringVar(&o.webhookCertDir, "webhook-cert-dir", "",
		"The directory with tls.crt and tls.key for the webhooks.")
	o.webhookCertificate.Bind(f)
	o.webhooks = os.Getenv("ENABLE_WEBHOOKS") != "false"
}

// controllerOptions checks the flags that concern sites, and returns the options they set.
func (o options) controllerOptions() (controller.Options, error) {
	var none controller.Options
	requests, err := resourceList("--viewer-requests", o.viewerRequests)
	if err != nil {
		return none, err
	}
	limits, err := resourceList("--viewer-limits", o.viewerLimits)
	if err != nil {
		return none, err
	}
	if o.viewerImage == "" {
		return none, fmt.Errorf("--viewer-image is empty: name the image of the viewer, such as registry.example/markdownview:1.0.0")
	}
	if o.contentLimit <= 0 || o.progressDeadline <= 0 || o.maxConcurrent <= 0 {
		return none, fmt.Errorf("--content-limit, --progress-deadline and --max-concurrent-reconciles must be more than 0")
	}
	return controller.Options{
		Children: children.Options{
			Image:     o.viewerImage,
			Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits},
		},
		ContentLimit:     o.contentLimit,
		ProgressDeadline: o.progressDeadline,
		MaxConcurrent:    o.maxConcurrent,
	}, nil
}

// resourceList parses a list such as cpu=10m,memory=32Mi.
func resourceList(flagName, text string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, part := range split(text) {
		name, amount, found := strings.Cut(part, "=")
		quantity, err := resource.ParseQuantity(amount)
		if !found || name == "" || err != nil {
			return nil, fmt.Errorf("%s: %q is not name=quantity, such as cpu=10m", flagName, part)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

// pprofAddress accepts only loopback addresses, because profiles reveal memory contents.
func (o options) pprofAddress() (string, error) {
	if off(o.pprofAddr) {
		return "", nil
	}
	if !isLoopback(o.pprofAddr) {
		return "", fmt.Errorf("--pprof-bind-address=%s is not a loopback address: use an address such as 127.0.0.1:6060", o.pprofAddr)
	}
	return o.pprofAddr, nil
}

// metricsOptions returns the options of the metrics server. The metrics server never allows unknown
// clients: either the API server authenticates the clients, or the metrics server listens only on a
// loopback address.
func (o options) metricsOptions() (metricsserver.Options, error) {
	m := metricsserver.Options{BindAddress: o.metricsAddr}
	switch {
	case off(o.metricsAddr):
		m.BindAddress = "0"
	case o.metricsSecure:
		m.SecureServing = true
		if o.metricsCertDir != "" {
			m.CertDir, m.CertName, m.KeyName = o.metricsCertDir, o.metricsCertName, o.metricsCertKey
		}
		m.FilterProvider = filters.WithAuthenticationAndAuthorization
		m.TLSOpts = []func(*tls.Config){withoutHTTP2}
	case !isLoopback(o.metricsAddr):
		return m, fmt.Errorf("--metrics-secure=false needs a loopback address, but --metrics-bind-address is %s: "+
			"use an address such as 127.0.0.1:8080", o.metricsAddr)
	}
	return m, nil
}

// withoutHTTP2 turns HTTP/2 off, to avoid the vulnerabilities GHSA-qppj-fm5r-hxr3 and
// GHSA-4374-p667-p6c8.
func withoutHTTP2(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }

func off(address string) bool { return address == "0" || address == "" }

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// watched returns the namespaces to watch; none means all.
func (o options) watched() ([]string, error) {
	switch {
	case o.oldNamespaces == "":
		return split(o.namespaces), nil
	case o.namespaces != "" && o.namespaces != o.oldNamespaces:
		return nil, fmt.Errorf("--namespaces=%s and --watch-namespaces=%s differ: remove --watch-namespaces, which is deprecated", o.namespaces, o.oldNamespaces)
	default:
		return split(o.oldNamespaces), nil
	}
}

func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
