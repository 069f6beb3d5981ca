package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
)

// generic holds the configuration that the three servers of the chain share.
type generic struct {
	*genericapiserver.Config
	informers informers.SharedInformerFactory
	storage   *serverstorage.DefaultStorageFactory
	self      *inProcess
}

// newGeneric applies the options in the order of upstream's BuildGenericConfig
// (pkg/controlplane/apiserver/config.go of v1.37; compare them at each version
// change). The code is repeated here because of one difference: upstream
// generates two RSA keys for the certificate of its loopback connection, which
// takes up to half a second; the method loopback uses ECDSA instead.
func newGeneric(opts options.CompletedOptions, s Surroundings) (*generic, error) {
	codecs := legacyscheme.Codecs
	if utilfeature.DefaultFeatureGate.Enabled(features.CBORServingAndStorage) {
		codecs = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
	}
	g := &generic{Config: genericapiserver.NewConfig(codecs)}
	g.Flagz = opts.Flagz
	g.MergedResourceConfig = controlplane.DefaultAPIResourceConfigSource()
	if err := opts.GenericServerRunOptions.ApplyTo(g.Config); err != nil {
		return nil, err
	}
	if err := opts.SecureServing.SecureServingOptions.ApplyTo(&g.SecureServing); err != nil {
		return nil, err
	}
	if err := g.loopback(s.UserAgent); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(g.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	g.informers = informers.NewSharedInformerFactoryWithOptions(client, resync,
		informers.WithTransform(withoutManagedFields), informers.WithInformerName(opts.InformerName))
	for _, apply := range []func() error{
		func() error { return opts.Features.ApplyTo(g.Config, client, g.informers) },
		func() error {
			return opts.APIEnablement.ApplyTo(g.Config, g.MergedResourceConfig, legacyscheme.Scheme)
		},
		func() error { return opts.EgressSelector.ApplyTo(g.Config) },
		func() error { return opts.Traces.ApplyTo(g.EgressSelector, g.Config) },
		func() error { g.describe(); return nil },
		func() error { return g.store(opts) },
		func() error { return g.admit(opts, client, s.Users) },
		func() error { return opts.Audit.ApplyTo(g.Config) },
	} {
		if err := apply(); err != nil {
			return nil, err
		}
	}
	g.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	return g, nil
}

const resync = 10 * time.Minute // the same as upstream

// withoutManagedFields drops managedFields, which the server's own informers
// never read.
func withoutManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil && accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// loopback gives the server a certificate for the host name that it uses to call itself, and
// configures a client that trusts the certificate.
func (g *generic) loopback(userAgent string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	own, err := cert.NewSelfSignedCACert(cert.Config{CommonName: genericapiserver.LoopbackClientServerNameOverride}, key)
	if err != nil {
		return err
	}
	certPEM, err := cert.EncodeCertificates([]*x509.Certificate{own}...)
	if err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	content, err := dynamiccertificates.NewStaticSNICertKeyContent("self-signed loopback", certPEM, keyPEM, genericapiserver.LoopbackClientServerNameOverride)
	if err != nil {
		return err
	}
	g.SecureServing.SNICerts = append([]dynamiccertificates.SNICertKeyContentProvider{content}, g.SecureServing.SNICerts...)
	g.LoopbackClientConfig, err = g.SecureServing.NewLoopbackClientConfig(uuid.New().String(), certPEM)
	if err != nil {
		return fmt.Errorf("configuring the loopback client: %w", err)
	}
	address, err := url.Parse(g.LoopbackClientConfig.Host)
	if err != nil {
		return err
	}
	g.self = &inProcess{host: address.Host}
	g.LoopbackClientConfig.WrapTransport = g.self.wrap
	g.LoopbackClientConfig.UserAgent = userAgent
	g.LoopbackClientConfig.ContentType = runtime.ContentTypeProtobuf
	g.LoopbackClientConfig.DisableCompression = true
	check := healthz.NamedCheck("loopback-serving-certificate", func(*http.Request) error {
		if time.Now().After(own.NotAfter) {
			return genericoptions.LoopbackCertificateExpiredError{}
		}
		return nil
	})
	g.AddHealthzChecks(check)
	g.AddLivezChecks(check)
	return nil
}

// describe configures OpenAPI and determines which requests count as
// long-running.
func (g *generic) describe() {
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme)
	g.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	g.OpenAPIConfig.Info.Title = "Kubernetes"
	g.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	g.OpenAPIV3Config.Info.Title = "Kubernetes"
	g.LongRunningFunc = filters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"),
		sets.NewString("attach", "exec", "proxy", "log", "portforward"),
	)
}

func (g *generic) store(opts options.CompletedOptions) (err error) {
	transport := &opts.Etcd.StorageConfig.Transport
	if g.EgressSelector != nil {
		transport.EgressLookup = g.EgressSelector.Lookup
	}
	transport.TracerProvider = g.TracerProvider
	config := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(g.EffectiveVersion)
	config.APIResourceConfig = g.MergedResourceConfig
	config.DefaultResourceEncoding.SetEffectiveVersion(g.EffectiveVersion)
	if g.storage, err = config.Complete(opts.Etcd).New(); err != nil {
		return err
	}
	g.storage.StorageConfig.StorageObjectCountTracker = g.StorageObjectCountTracker
	return opts.Etcd.ApplyWithStorageFactoryTo(g.storage, g.Config)
}

// admit configures authentication and authorization.
func (g *generic) admit(opts options.CompletedOptions, client kubernetes.Interface, users map[string]*user.DefaultInfo) error {
	ctx := wait.ContextForChannel(g.DrainedNotify())
	err := opts.Authentication.ApplyTo(ctx, &g.Authentication, g.SecureServing, g.EgressSelector, g.OpenAPIConfig, g.OpenAPIV3Config, client, g.informers, g.APIServerID)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		tokens := authenticatorfactory.NewFromTokens(users, g.Authentication.APIAudiences)
		g.Authentication.Authenticator = union.New(tokens, g.Authentication.Authenticator)
	}
	var rbac bool
	g.Authorization.Authorizer, g.RuleResolver, rbac, err = controlplaneapiserver.BuildAuthorizer(ctx, opts.CompletedOptions, g.EgressSelector, g.APIServerID, g.informers)
	if err != nil {
		return fmt.Errorf("invalid authorization config: %w", err)
	}
	if opts.Authorization != nil && !rbac {
		g.DisabledPostStartHooks.Insert(rbacrest.PostStartHookName)
	}
	return nil
}
