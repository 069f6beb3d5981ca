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

// Scheme has the built-in kinds and the registered ones.
var Scheme = builtin()

func builtin() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err) // the scheme was empty, so there can be no conflict
	}
	metav1.AddToGroupVersion(s, Version)
	metav1.AddToGroupVersion(s, Example)
	return s
}

// clusterScoped lists those built-in, cluster-scoped kinds that the controllers use.
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

// Mapper returns a mapper from kinds to resources that needs no discovery. Mapper can be used as
// ctrl.Options.MapperProvider.
func Mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) { return kinds, nil }

// Register adds a namespaced kind of Version to the scheme and the mapper. Each kind needs
// separate types for its spec and status.
func Register[Spec, Status any](kind string) { RegisterIn[Spec, Status](Version, kind) }

// RegisterIn is like Register, but for a kind of another group version.
func RegisterIn[Spec, Status any](group schema.GroupVersion, kind string) {
	Scheme.AddKnownTypeWithName(group.WithKind(kind), &Object[Spec, Status]{})
	Scheme.AddKnownTypeWithName(group.WithKind(kind+"List"), &List[Spec, Status]{})
	kinds.Add(group.WithKind(kind), meta.RESTScopeNamespace)
}
