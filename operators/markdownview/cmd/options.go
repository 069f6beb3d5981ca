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

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/content"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/controller"
)

// viewerImage is the image of viewers when no flag names one. The Makefile sets
// it to that of the manager: both programs are in one image.
var viewerImage = ""

// options are the command line.
type options struct {
	metricsAddr     string
	metricsSecure   bool
	healthProbeAddr string
	pprofAddr       string
	leaderElect     bool
	leaderNamespace string
	namespaces      string
	maxConcurrent   int

	viewerImage      string
	viewerRequests   string
	viewerLimits     string
	allowedImages    string
	contentLimit     int
	progressDeadline time.Duration

	webhookPort    int
	webhookCertDir string
	// webhooks is ENABLE_WEBHOOKS: off only when that is false.
	webhooks bool
}

func (o *options) bind(f *flag.FlagSet) {
	f.StringVar(&o.metricsAddr, "metrics-bind-address", "0",
		"The address of the metrics endpoint, for example :8443. 0 turns it off.")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"Serve metrics over HTTPS, to clients the API server authenticates and authorizes. "+
			"Without it only a loopback address is accepted.")
	f.StringVar(&o.healthProbeAddr, "health-probe-bind-address", "0",
		"The address of the /healthz and /readyz endpoints, for example :8081. 0 turns them off.")
	f.StringVar(&o.pprofAddr, "pprof-bind-address", "0",
		"The loopback address of Go's profiles, for example 127.0.0.1:6060. 0 turns them off.")
	f.BoolVar(&o.leaderElect, "leader-elect", false,
		"Elect a leader, so that of several managers one is active.")
	f.StringVar(&o.leaderNamespace, "leader-election-namespace", "",
		"The namespace of the lease. Empty means the manager's own, in a cluster.")
	f.StringVar(&o.namespaces, "watch-namespaces", "",
		"The namespaces to watch, separated by commas. Empty means all.")
	f.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 4,
		"How many sites are worked on at the same time.")

	f.StringVar(&o.viewerImage, "viewer-image", viewerImage,
		"The image of viewers, where a MarkdownView names none. A new one is rolled out to all those.")
	f.StringVar(&o.viewerRequests, "viewer-requests", "cpu=10m,memory=32Mi",
		"The resources a viewer requests, where a MarkdownView says nothing.")
	f.StringVar(&o.viewerLimits, "viewer-limits", "memory=256Mi",
		"The limits of a viewer, where a MarkdownView says nothing.")
	f.StringVar(&o.allowedImages, "allowed-viewer-images", "",
		"The images that viewerImage may name, separated by commas. "+
			"* stands for any part of a name but a slash, ** for a slash too; * alone allows all. "+
			"Empty means that it may name none.")
	f.IntVar(&o.contentLimit, "content-limit", content.DefaultLimit,
		"How many bytes the files of one site may have together.")
	f.DurationVar(&o.progressDeadline, "progress-deadline", 5*time.Minute,
		"How long viewers may take to become Ready before the MarkdownView is Degraded.")

	f.IntVar(&o.webhookPort, "webhook-port", 9443,
		"The port of the webhooks. The environment variable ENABLE_WEBHOOKS=false turns them off.")
	f.StringVar(&o.webhookCertDir, "webhook-cert-dir", "",
		"The directory of tls.crt and tls.key for the webhooks.")
	o.webhooks = os.Getenv("ENABLE_WEBHOOKS") != "false"
}

// controllerOptions checks what the command line says of sites.
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

// resourceList reads cpu=10m,memory=32Mi.
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

// pprofAddress refuses to show the process's memory to anybody but this machine.
func (o options) pprofAddress() (string, error) {
	if off(o.pprofAddr) {
		return "", nil
	}
	if !isLoopback(o.pprofAddr) {
		return "", fmt.Errorf("--pprof-bind-address=%s: use a loopback address such as 127.0.0.1:6060", o.pprofAddr)
	}
	return o.pprofAddr, nil
}

// metricsOptions refuses to serve metrics to anybody who asks: either the API
// server vouches for the client, or the client is on this machine.
func (o options) metricsOptions() (metricsserver.Options, error) {
	m := metricsserver.Options{BindAddress: o.metricsAddr}
	switch {
	case off(o.metricsAddr):
		m.BindAddress = "0"
	case o.metricsSecure:
		m.SecureServing = true
		m.FilterProvider = filters.WithAuthenticationAndAuthorization
		m.TLSOpts = []func(*tls.Config){withoutHTTP2}
	case !isLoopback(o.metricsAddr):
		return m, fmt.Errorf("--metrics-secure=false with --metrics-bind-address=%s: "+
			"use a loopback address such as 127.0.0.1:8080", o.metricsAddr)
	}
	return m, nil
}

// withoutHTTP2 is because of GHSA-qppj-fm5r-hxr3 and GHSA-4374-p667-p6c8.
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

func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
