package object

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Scheme knows the built-in kinds and all that were registered.
var Scheme = builtin()

func builtin() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err) // the scheme was empty, so there is nothing to clash with
	}
	metav1.AddToGroupVersion(s, Version)
	return s
}

// clusterScoped are the built-in kinds that are in no namespace, of those that
// controllers here use.
var clusterScoped = map[schema.GroupVersionKind]bool{
	{Version: "v1", Kind: "Namespace"}:        true,
	{Version: "v1", Kind: "Node"}:             true,
	{Version: "v1", Kind: "PersistentVolume"}: true,

	{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}:                  true,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}:        true,
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}: true,
}

// kinds maps the kinds of Scheme to resources.
var kinds = builtinKinds()

func builtinKinds() *meta.DefaultRESTMapper {
	m := meta.NewDefaultRESTMapper(Scheme.PrioritizedVersionsAllGroups())
	for kind := range Scheme.AllKnownTypes() {
		if clusterScoped[kind] {
			m.Add(kind, meta.RESTScopeRoot)
		} else {
			m.Add(kind, meta.RESTScopeNamespace)
		}
	}
	return m
}

// Mapper maps kinds to resources without asking the server, so that a start costs
// no discovery. It fits ctrl.Options.MapperProvider.
func Mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) { return kinds, nil }

// Register makes the scheme and the mapper know a kind of custom resources that
// is in a namespace. Each kind needs types of its own for its spec and status.
func Register[Spec, Status any](kind string) {
	register[Spec, Status](kind, meta.RESTScopeNamespace)
}

// RegisterCluster is Register for a kind that is in no namespace.
func RegisterCluster[Spec, Status any](kind string) {
	register[Spec, Status](kind, meta.RESTScopeRoot)
}

func register[Spec, Status any](kind string, scope meta.RESTScope) {
	Scheme.AddKnownTypeWithName(Version.WithKind(kind), &Object[Spec, Status]{})
	Scheme.AddKnownTypeWithName(Version.WithKind(kind+"List"), &List[Spec, Status]{})
	kinds.Add(Version.WithKind(kind), scope)
}
