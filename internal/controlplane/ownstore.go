package controlplane

import (
	"context"
	"errors"
	"net"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/baseline"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// The functions in this file need a store that the plane runs itself.

// ErrForeignStore reports a Checkpoint, Reset or Follow of a plane with an external
// etcd.
var ErrForeignStore = errors.New("a plane with an external etcd cannot be followed or reset, because the etcd may hold other users' data; omit --etcd-servers")

// Checkpoint waits until the plane is idle, and makes its state the baseline for Reset;
// see baseline.Keeper.
func (p *Plane) Checkpoint(ctx context.Context) error {
	return p.withStore(ctx, p.keeper.Checkpoint)
}

// Reset returns the running plane to the baseline; see baseline.Keeper. Programs in Pods do not
// survive a Reset, even if their Pods are part of the baseline.
func (p *Plane) Reset(ctx context.Context) error {
	return p.withStore(ctx, func(ctx context.Context) error { return p.withoutPrograms(ctx, p.keeper.Reset) })
}

// Follow calls the function pass with the content of the store, and then with every committed
// write, in order and without gaps. Through the API, a client could not see every write: a watch
// covers only one kind, and may skip states when it lags. The revision of a write is the
// resourceVersion of its object. Follow returns when ctx or the plane ends. Follow does not work
// with an external etcd.
func (p *Plane) Follow(ctx context.Context, pass func(revision int64, commits []storage.Commit)) error {
	return p.withStore(ctx, func(ctx context.Context) error {
		return p.etcd.Follow(ctx, p.storePrefix(), pass)
	})
}

// Revision returns the revision of the last write to the plane's own store.
func (p *Plane) Revision(ctx context.Context) (int64, error) {
	if p.etcd == nil {
		return 0, ErrForeignStore
	}
	return p.etcd.Revision(ctx)
}

// withStore calls the function use with a context that also ends when the plane ends.
func (p *Plane) withStore(ctx context.Context, use func(context.Context) error) error {
	if p.etcd == nil {
		return ErrForeignStore
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.tasks.ctx, func() { cancel(context.Cause(p.tasks.ctx)) })()
	return use(ctx)
}

func (p *Plane) newKeeper() *baseline.Keeper {
	c := baseline.Config{
		Store: p.etcd, API: p.loopback, Prefix: p.storePrefix(), Bootstrap: p.bootstrapKeys(), Waiting: p.opts.Waiting,
	}
	if p.opts.Profile.Has("clusterrole-aggregation-controller") {
		c.Aggregated = []string{"admin", "edit", "view"}
	}
	return baseline.New(c)
}

// bootstrapKeys lists the keys of the objects that the plane itself creates, possibly after
// /readyz answers ok.
func (p *Plane) bootstrapKeys() []string {
	keys := []string{"ranges/servicenodeports", "servicecidrs/kubernetes", "services/specs/default/kubernetes", "configmaps/kube-system/extension-apiserver-authentication"}
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"} {
		keys = append(keys, "namespaces/"+namespace)
		if p.opts.Profile.RunsServiceAccounts() {
			keys = append(keys, "serviceaccounts/"+namespace+"/default")
		}
		if p.opts.Profile.Has("root-ca-certificate-publisher-controller") {
			keys = append(keys, "configmaps/"+namespace+"/kube-root-ca.crt")
		}
	}
	if p.hasEndpoints() {
		keys = append(keys, "endpointslices/default/kubernetes")
	}
	return keys
}

// hasEndpoints reports whether kube-apiserver writes its own address to an EndpointSlice.
func (p *Plane) hasEndpoints() bool {
	advertised := apiserver.HasAddress(nil)
	for _, flag := range p.apiserverFlags() {
		switch name, value, _ := strings.Cut(flag, "="); name {
		case "--endpoint-reconciler-type":
			return value != "none"
		case "--advertise-address", "--external-hostname":
			return true
		case "--bind-address":
			advertised = apiserver.HasAddress(net.ParseIP(value))
		}
	}
	return advertised
}

// storePrefix returns the common prefix of kube-apiserver's keys.
func (p *Plane) storePrefix() string {
	prefix := defaultPrefix
	for _, flag := range p.apiserverFlags() {
		if value, ok := strings.CutPrefix(flag, "--etcd-prefix="); ok {
			prefix = value
		}
	}
	return path.Join("/", prefix) + "/"
}
