package envtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/controlplane/pki"
	"github.com/koboshi-dev/koboshi/internal/controlplane/useragent"
	"github.com/koboshi-dev/koboshi/internal/envtest/shim"
)

// ControllersVariable names the controllers that run beside the API server,
// with commas. Stock envtest runs none, and so does this one by default.
const ControllersVariable = "KOBOSHI_CONTROLLERS"

const (
	apiserverName = "kube-apiserver"
	managerName   = "kube-controller-manager"
	schedulerName = "kube-scheduler"
	nodesName     = "kwok"
)

// beside is what runs beside an API server that was started with args.
type beside struct {
	profile  controllers.Profile
	args     []string
	tokens   map[string]string // by component
	loopback *rest.Config
}

// who the components are, as in a cluster.
var who = map[string]user.DefaultInfo{
	managerName:   {Name: "system:kube-controller-manager", Groups: []string{user.AllAuthenticated}},
	schedulerName: {Name: "system:kube-scheduler", Groups: []string{user.AllAuthenticated}},
	nodesName:     {Name: "koboshi:nodes", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}},
}

func newTokens() map[string]string {
	tokens := map[string]string{}
	for component := range who {
		tokens[component] = rand.Text()
	}
	return tokens
}

// users are those that the server is to let in: nobody where nothing runs.
func (b beside) users() map[string]*user.DefaultInfo {
	users := map[string]*user.DefaultInfo{}
	if len(b.profile.Controllers) == 0 {
		return users
	}
	for component, info := range who {
		users[b.tokens[component]] = &info
	}
	return users
}

// run starts the controllers.
func (b beside) run(ctx context.Context, loopback *rest.Config) error {
	b.loopback = loopback
	if b.profile.RunsManager() {
		if err := b.runManager(ctx); err != nil {
			return err
		}
	}
	if b.profile.Has(controllers.Scheduler) {
		return b.runScheduler(ctx)
	}
	return nil
}

func (b beside) runManager(ctx context.Context) error {
	client, kubeconfig, err := b.identity(managerName)
	if err != nil {
		return err
	}
	config := controllers.ManagerConfig{
		Client:       client,
		Kubeconfig:   kubeconfig,
		Profile:      b.profile,
		RootCAFile:   b.file("apiserver.crt"),
		TokenKeyFile: shim.Flag(b.args, "service-account-signing-key-file"),
	}
	go ended(ctx, managerName, func() error { return controllers.RunManager(ctx, config) })
	return nil
}

// runScheduler runs a node beside it, without which there is nothing to schedule to.
func (b beside) runScheduler(ctx context.Context) error {
	client, kubeconfig, err := b.identity(schedulerName)
	if err != nil {
		return err
	}
	go ended(ctx, schedulerName, func() error { return controllers.RunScheduler(ctx, client, kubeconfig) })
	admin, err := kubernetes.NewForConfig(b.loopback)
	if err != nil {
		return err
	}
	if err := nodes.Ensure(ctx, admin, 1, 0); err != nil {
		return err
	}
	engine, kubeconfig, err := b.identity(nodesName)
	if err != nil {
		return err
	}
	return nodes.Run(ctx, nodes.Config{Client: engine, Kubeconfig: kubeconfig, Log: os.Stderr})
}

func (b beside) file(name string) string {
	dir := shim.Flag(b.args, "cert-dir")
	if dir == "" {
		dir = "/var/run/kubernetes" // upstream's default
	}
	return filepath.Join(dir, name)
}

// identity is a client of the server by the component's token, also as a file,
// which lies beside the server's keys and is removed with them.
func (b beside) identity(component string) (*rest.Config, string, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[pki.ClusterName] = &clientcmdapi.Cluster{
		Server:                   b.loopback.Host,
		CertificateAuthorityData: b.loopback.CAData,
		TLSServerName:            b.loopback.ServerName,
	}
	c.AuthInfos[pki.ClusterName] = &clientcmdapi.AuthInfo{Token: b.tokens[component]}
	c.Contexts[pki.ClusterName] = &clientcmdapi.Context{Cluster: pki.ClusterName, AuthInfo: pki.ClusterName}
	c.CurrentContext = pki.ClusterName
	path := b.file("koboshi-" + component + ".conf")
	if err := pki.WriteKubeconfig(path, c); err != nil {
		return nil, "", err
	}
	client, err := pki.RESTConfig(c)
	if err != nil {
		return nil, "", err
	}
	return useragent.As(component, client), path, nil
}

// ended tells in the log of the API server when a component ends by itself.
func ended(ctx context.Context, component string, run func() error) {
	err := run()
	if ctx.Err() == nil {
		klog.ErrorS(err, "Component ended", "component", component)
	}
}

// chosen reads which controllers run.
func chosen() (controllers.Profile, error) {
	p, err := controllers.Parse(os.Getenv(ControllersVariable))
	if err != nil {
		err = fmt.Errorf("%s: %w", ControllersVariable, err)
	}
	return p, err
}
