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
	"github.com/koboshi-dev/koboshi/internal/controlplane/credentials"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/controlplane/useragent"
	"github.com/koboshi-dev/koboshi/internal/controlplane/volumes"
	"github.com/koboshi-dev/koboshi/internal/envtest/shim"
)

// ControllersVariable names the environment variable that lists the controllers to run with
// the API server, separated by commas. By default no controllers run, as in stock envtest.
const ControllersVariable = "KOBOSHI_CONTROLLERS"

const (
	apiserverName = "kube-apiserver"
	managerName   = "kube-controller-manager"
	schedulerName = "kube-scheduler"
	nodesName     = "kwok"
)

// beside runs controllers next to an API server that was started with args.
type beside struct {
	profile  controllers.Profile
	args     []string
	tokens   map[string]string // keyed by component
	loopback *rest.Config
}

// componentUsers maps each component to the user that it has in a cluster.
var componentUsers = map[string]user.DefaultInfo{
	managerName:   {Name: "system:kube-controller-manager", Groups: []string{user.AllAuthenticated}},
	schedulerName: {Name: "system:kube-scheduler", Groups: []string{user.AllAuthenticated}},
	nodesName:     {Name: "koboshi:nodes", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}},
	volumes.Name:  {Name: volumes.User, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}},
}

func newTokens() map[string]string {
	tokens := map[string]string{}
	for component := range componentUsers {
		tokens[component] = rand.Text()
	}
	return tokens
}

// users returns the users that the server should accept, keyed by token. If no controllers
// run, it returns no users.
func (b beside) users() map[string]*user.DefaultInfo {
	users := map[string]*user.DefaultInfo{}
	if len(b.profile.Controllers) == 0 {
		return users
	}
	for component, info := range componentUsers {
		users[b.tokens[component]] = &info
	}
	return users
}

// run starts the controllers.
func (b beside) run(ctx context.Context, loopback *rest.Config) error {
	b.loopback = loopback
	if b.profile.BindsVolumes() {
		if err := b.runVolumes(ctx); err != nil {
			return err
		}
	}
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

// runScheduler runs the scheduler and a simulated node to which it can schedule Pods.
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

// runVolumes provides a default StorageClass, and provisions its volumes.
func (b beside) runVolumes(ctx context.Context) error {
	admin, err := kubernetes.NewForConfig(b.loopback)
	if err != nil {
		return err
	}
	if err := volumes.EnsureClass(ctx, admin); err != nil {
		return err
	}
	own, _, err := b.identity(volumes.Name)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return err
	}
	go ended(ctx, volumes.Name, func() error { return volumes.Run(ctx, volumes.Config{Client: client}) })
	return nil
}

func (b beside) file(name string) string {
	dir := shim.Flag(b.args, "cert-dir")
	if dir == "" {
		dir = "/var/run/kubernetes" // upstream's default
	}
	return filepath.Join(dir, name)
}

// identity returns a client that uses the component's token, and the path of a
// kubeconfig with that token. The file is in the folder of the server's keys and is
// removed together with the keys.
func (b beside) identity(component string) (*rest.Config, string, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[credentials.ClusterName] = &clientcmdapi.Cluster{
		Server:                   b.loopback.Host,
		CertificateAuthorityData: b.loopback.CAData,
		TLSServerName:            b.loopback.ServerName,
	}
	c.AuthInfos[credentials.ClusterName] = &clientcmdapi.AuthInfo{Token: b.tokens[component]}
	c.Contexts[credentials.ClusterName] = &clientcmdapi.Context{Cluster: credentials.ClusterName, AuthInfo: credentials.ClusterName}
	c.CurrentContext = credentials.ClusterName
	path := b.file("koboshi-" + component + ".conf")
	if err := credentials.WriteKubeconfig(path, c); err != nil {
		return nil, "", err
	}
	client, err := credentials.RESTConfig(c)
	if err != nil {
		return nil, "", err
	}
	return useragent.As(component, client), path, nil
}

// ended runs a component, and logs an error if the component ends without being stopped.
func ended(ctx context.Context, component string, run func() error) {
	err := run()
	if ctx.Err() == nil {
		klog.ErrorS(err, "Component ended", "component", component)
	}
}

// chosen returns the profile of controllers that the environment selects.
func chosen() (controllers.Profile, error) {
	p, err := controllers.Parse(os.Getenv(ControllersVariable))
	if err != nil {
		err = fmt.Errorf("%s: %w", ControllersVariable, err)
	}
	return p, err
}
