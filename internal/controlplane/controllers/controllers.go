// Package controllers runs upstream's kube-controller-manager and
// kube-scheduler in this process, and defines which of their controllers each
// profile runs.
//
// kube-controller-manager and kube-scheduler serve no ports for health checks, because both
// are healthy as long as the process runs. Leader election is off, because the lock on the
// data directory, or in the external etcd, allows only one plane.
package controllers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
)

// shutdownTimeout limits the wait for controllers after their context has ended.
const shutdownTimeout = 200 * time.Millisecond

// Upstream's default rate limits for clients protect an API server that many clients share.
// In a plane, these default limits would only delay the start, when each of 40 controllers
// fetches a token.
const (
	clientQPS   = 1000 // requests per second
	clientBurst = 2000 // requests in a burst
)

// ManagerConfig configures kube-controller-manager.
type ManagerConfig struct {
	// Client is the client configuration with the manager's own identity.
	Client *rest.Config
	// Kubeconfig is a file with the same identity, which upstream's options
	// require.
	Kubeconfig string
	// Profile names the controllers to run.
	Profile Profile
	// RootCAFile is published in every namespace as kube-root-ca.crt.
	RootCAFile string
	// TokenKeyFile holds the key that signs the service account tokens in Secrets.
	TokenKeyFile string
	// SigningCertFile and SigningKeyFile are used to sign approved
	// CertificateSigningRequests.
	SigningCertFile, SigningKeyFile string
}

// RunManager runs the profile's controllers until ctx ends. As in upstream, the
// logger comes from the context.
func RunManager(ctx context.Context, c ManagerConfig) error {
	opts, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	known, off, aliases := kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases()
	if err := parse(opts.Flags(known, off, aliases), c.flags()); err != nil {
		return fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	opts.ControllerShutdownTimeout = shutdownTimeout
	cfg, err := opts.Config(ctx, known, off, aliases)
	if err != nil {
		return fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	as(cfg.Kubeconfig, c.Client)
	if cfg.Client, err = kubernetes.NewForConfig(rest.AddUserAgent(cfg.Kubeconfig, kcmoptions.KubeControllerManagerUserAgent)); err != nil {
		return err
	}
	return stopped(ctx, kcm.Run(ctx, cfg.Complete()))
}

func (c ManagerConfig) flags() []string {
	flags := []string{
		"--kubeconfig=" + c.Kubeconfig,
		"--leader-elect=false",
		"--secure-port=0",
		// As in a kubeadm cluster, each controller has its own user, by which
		// admission webhooks and policies distinguish controllers.
		"--use-service-account-credentials=true",
		"--kube-api-qps=" + strconv.Itoa(clientQPS),
		"--kube-api-burst=" + strconv.Itoa(clientBurst),
		"--root-ca-file=" + c.RootCAFile,
		"--cluster-signing-cert-file=" + c.SigningCertFile,
		"--cluster-signing-key-file=" + c.SigningKeyFile,
	}
	// Upstream builds this controller whenever it has a key for tokens, regardless of
	// --controllers.
	if c.Profile.Has(names.ServiceAccountTokenController) {
		flags = append(flags, "--service-account-private-key-file="+c.TokenKeyFile)
	}
	for _, name := range c.Profile.Controllers {
		if name != Scheduler {
			flags = append(flags, "--controllers="+name)
		}
	}
	return flags
}

// as copies the user agent from client to config. The user agent appears in managedFields
// and audit logs; upstream would derive it from the program's name, here koboshi.
func as(config, client *rest.Config) {
	config.UserAgent = client.UserAgent
	config.WrapTransport = client.WrapTransport
}

// stopped returns err, or nil if the component returned err only because it was stopped.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func parse(sets cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		fs.AddFlagSet(set)
	}
	return fs.Parse(args)
}
