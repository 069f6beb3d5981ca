// Package controllers runs upstream's kube-controller-manager and
// kube-scheduler in this process, and defines which of their controllers each
// profile runs.
//
// Neither serves a port: their health is the process's. Neither elects a
// leader: the lock of the data directory, or of the external etcd, lets only
// one plane run.
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

// shutdownTimeout bounds the wait for controllers after their context ended.
const shutdownTimeout = 200 * time.Millisecond

// Upstream's client limits protect an API server that many share. Here they
// would only make the start wait: 40 controllers fetch a token each.
const (
	clientQPS   = 1000 // requests per second
	clientBurst = 2000 // requests at once
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
	// RootCAFile is published into every namespace as kube-root-ca.crt.
	RootCAFile string
	// TokenKeyFile signs service account tokens of type Secret.
	TokenKeyFile string
	// SigningCertFile and SigningKeyFile sign approved CertificateSigningRequests.
	SigningCertFile, SigningKeyFile string
}

// RunManager runs the profile's controllers until ctx ends. The logger comes
// from the context, as upstream.
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
		// Each controller has its own user, as in a kubeadm cluster: admission
		// webhooks and policies distinguish controllers by it.
		"--use-service-account-credentials=true",
		"--kube-api-qps=" + strconv.Itoa(clientQPS),
		"--kube-api-burst=" + strconv.Itoa(clientBurst),
		"--root-ca-file=" + c.RootCAFile,
		"--cluster-signing-cert-file=" + c.SigningCertFile,
		"--cluster-signing-key-file=" + c.SigningKeyFile,
	}
	// Upstream builds this one regardless of --controllers, if it has a key.
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

// as gives config the user agent of client. Upstream derives it from the
// program's name, which is ours; it shows in managedFields and audit logs.
func as(config, client *rest.Config) {
	config.UserAgent = client.UserAgent
	config.WrapTransport = client.WrapTransport
}

// stopped ignores the error that a component returns because it was stopped.
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
