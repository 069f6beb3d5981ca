package usage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/stores"
)

// Server is the usage server.
type Server struct {
	// Kubeconfig is the kubeconfig of the API server; empty means the API server of
	// the cluster that this process runs in.
	Kubeconfig string
	// Listener accepts the connections.
	Listener net.Listener
	// CertFile and KeyFile hold the serving certificate; they are reloaded when
	// they change.
	CertFile, KeyFile string
	// RequestTimeout limits the time of a whole request.
	RequestTimeout time.Duration
	// MaxRequests is the number of requests that may count objects at the same time.
	MaxRequests int
	// Concurrency is the number of buckets that one request may count at the same time.
	Concurrency int
	// MaxObjects limits the count of one bucket.
	MaxObjects int64
	// MaxAge is the time for which a count is kept and returned again. Zero means that
	// every request counts again.
	MaxAge time.Duration
	// Namespaces are the only namespaces whose buckets are counted; an empty list means
	// all.
	Namespaces []string
	// Stores limits the requests to one store, for all clients together.
	Stores stores.Options
}

// Run serves until the context ends, and then waits for the requests in progress.
func (s *Server) Run(ctx context.Context) error {
	reader, err := s.newReader()
	if err != nil {
		return err
	}
	config, err := s.newConfig()
	if err != nil {
		return err
	}
	server, err := config.Complete(nil).New("usage-server", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fmt.Errorf("creating the server: %w", err)
	}
	buckets := NewBuckets(reader, &Measurer{
		Stores:      &Declared{Reader: reader, Namespaces: s.Namespaces, Options: s.Stores},
		MaxObjects:  s.MaxObjects,
		MaxAge:      s.MaxAge,
		Concurrency: s.Concurrency,
	}, s.MaxRequests, s.Namespaces...)
	group := genericapiserver.NewDefaultAPIGroupInfo(usagev1.GroupVersion.Group, served, metav1.ParameterCodec, codecs)
	group.VersionedResourcesStorageMap[usagev1.GroupVersion.Version] = map[string]rest.Storage{resource.Resource: buckets}
	if err := server.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("installing %s: %w", usagev1.GroupVersion, err)
	}
	return server.PrepareRun().RunWithContext(ctx)
}

// newConfig returns a configuration without the parts that a server without storage
// does not need: admission, audit, watch caches, profiling, priority and fairness.
func (s *Server) newConfig() (*genericapiserver.Config, error) {
	config := genericapiserver.NewConfig(codecs)
	config.RequestTimeout = s.RequestTimeout
	config.EnableProfiling = false
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapi.NewDefinitionNamer(served)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = usagev1.GroupVersion.Group
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title = usagev1.GroupVersion.Group

	serving := genericoptions.NewSecureServingOptions()
	serving.Listener = s.Listener
	serving.ServerCert = genericoptions.GeneratableKeyCert{
		CertKey: genericoptions.CertKey{CertFile: s.CertFile, KeyFile: s.KeyFile},
	}
	// The front proxy sends the requests of all users on one connection.
	serving.HTTP2MaxStreamsPerConnection = 1000
	authentication := genericoptions.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = s.Kubeconfig
	authorization := genericoptions.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFile = s.Kubeconfig
	if err := errors.Join(append(serving.Validate(), append(authentication.Validate(), authorization.Validate()...)...)...); err != nil {
		return nil, err
	}
	if err := serving.WithLoopback().ApplyToConfig(config); err != nil {
		return nil, fmt.Errorf("setting up serving: %w", err)
	}
	if err := authentication.ApplyTo(&config.Authentication, config.SecureServing, config.OpenAPIConfig); err != nil {
		return nil, fmt.Errorf("setting up authentication by the API server: %w", err)
	}
	if err := authorization.ApplyTo(&config.Authorization); err != nil {
		return nil, fmt.Errorf("setting up authorization by the API server: %w", err)
	}
	return config, nil
}

// newReader reads from the API server directly. There is no cache, because it
// would hold Secrets, and nothing is read twice.
func (s *Server) newReader() (client.Reader, error) {
	var config *restclient.Config
	var err error
	if s.Kubeconfig == "" {
		config, err = restclient.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	// Priority and fairness in the API server limit the requests of this client. A limit
	// here would only delay user requests that have already been admitted.
	config.QPS = -1
	transport, err := restclient.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the API server: %w", err)
	}
	reader, err := client.New(config, client.Options{HTTPClient: transport, Scheme: read, Mapper: mapper()})
	if err != nil {
		return nil, fmt.Errorf("creating a client for the API server: %w", err)
	}
	return reader, nil
}

// mapper returns a mapper for the kinds that the server reads, so that no discovery is
// needed.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{
		storagev1.GroupVersion.WithKind("StorageBucket"),
		storagev1.GroupVersion.WithKind("ObjectStore"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	} {
		m.Add(gvk, meta.RESTScopeNamespace)
	}
	return m
}

var (
	// served has the kinds that the server returns.
	served = newScheme(usagev1.AddToScheme, func(scheme *runtime.Scheme) error {
		unversioned := schema.GroupVersion{Version: "v1"}
		metav1.AddToGroupVersion(scheme, unversioned)
		scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{},
			&metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
		return nil
	})
	codecs = serializer.NewCodecFactory(served)

	// read has the kinds that the server reads.
	read = newScheme(storagev1.AddToScheme, corev1.AddToScheme)
)

func newScheme(add ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, f := range add {
		utilruntime.Must(f(scheme))
	}
	return scheme
}
