// Package stores creates connections to the stores that objects declare. The package keeps each
// connection until the declaration of the store, or an object that the declaration refers to,
// changes.
package stores

import (
	"slices"
	"strconv"
	"strings"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/refs"
)

// Location is the declaration of a store.
type Location struct {
	// Namespace is the namespace of the object and of the objects that it refers to.
	Namespace string
	// Endpoint is the URL of the S3 API, as written.
	Endpoint string
	// Region is the region that requests are signed for.
	Region string
	// PathStyle addresses buckets in the path.
	PathStyle bool
	// CABundle names the certificates to trust; nil means the system's certificates.
	CABundle *storagev1.CABundleReference
	// ExpectedBucketOwner is the account that all buckets belong to; it may be empty.
	ExpectedBucketOwner string
	// Credentials sign requests.
	Credentials storagev1.Credentials
	// Limits can only lower the limits in Options.
	Limits storagev1.RequestLimits
}

// OfStore returns the location that an ObjectStore declares.
func OfStore(store *storagev1.ObjectStore) Location {
	return Location{
		Namespace:   store.Namespace,
		Endpoint:    store.Spec.Endpoint,
		Region:      store.Spec.Region,
		PathStyle:   store.Spec.PathStyle == nil || *store.Spec.PathStyle,
		CABundle:    store.Spec.CABundle,
		Credentials: store.Spec.Credentials,

		ExpectedBucketOwner: store.Spec.ExpectedBucketOwner,
		Limits:              store.Spec.Limits,
	}
}

// OfInline returns the location that a StorageBucket declares as its inline store.
func OfInline(namespace string, store *storagev1.InlineStore) Location {
	return Location{
		Namespace: namespace,
		Endpoint:  store.Endpoint,
		Region:    store.Region,
		PathStyle: true,
		Credentials: storagev1.Credentials{
			Source:    storagev1.CredentialsFromSecret,
			SecretRef: &store.CredentialsSecretRef,
		},
	}
}

// useCredentials and useCABundle are the purposes of the objects that a location refers to.
const (
	useCredentials = "credentials"
	useCABundle    = "caBundle"
)

// Refs returns the objects that the location refers to.
func (l Location) Refs() []refs.Ref {
	var all []refs.Ref
	if l.Credentials.SecretRef != nil {
		all = append(all, l.credentialsRef())
	}
	if l.CABundle != nil {
		all = append(all, l.caBundleRef())
	}
	return all
}

// credentialsRef must be called only if Credentials.SecretRef is set.
func (l Location) credentialsRef() refs.Ref {
	return refs.Ref{Kind: "Secret", Namespace: l.Namespace, Name: l.Credentials.SecretRef.Name}
}

// caBundleRef must be called only if CABundle is set.
func (l Location) caBundleRef() refs.Ref {
	return refs.Ref{Kind: kindOf(l.CABundle), Namespace: l.Namespace, Name: l.CABundle.Name}
}

func kindOf(ref *storagev1.CABundleReference) string {
	if ref.Kind == "" {
		return "ConfigMap"
	}
	return ref.Kind
}

// id returns the same value for two locations that may share a connection.
func (l Location) id() string {
	secret, bundle := "", ""
	if ref := l.Credentials.SecretRef; ref != nil {
		secret = ref.Name
	}
	if ref := l.CABundle; ref != nil {
		bundle = kindOf(ref) + "/" + ref.Name + "/" + ref.Key
	}
	// The separator is a character that no part can contain.
	return strings.Join([]string{
		l.Namespace, l.Endpoint, l.Region, strconv.FormatBool(l.PathStyle), l.ExpectedBucketOwner, bundle, string(l.Credentials.Source), secret,
		strconv.Itoa(int(l.Limits.RequestsPerSecond)), strconv.Itoa(int(l.Limits.Concurrency)),
	}, "\x00")
}

// Allowed reports whether StorageBuckets of a namespace may refer to the store.
func Allowed(store *storagev1.ObjectStore, namespace string) bool {
	return namespace == store.Namespace ||
		slices.Contains(store.Spec.AllowedNamespaces, namespace) ||
		slices.Contains(store.Spec.AllowedNamespaces, "*")
}
