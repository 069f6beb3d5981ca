package apiserver

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// ownWrites lets the server's CRD controllers read their own writes: a write
// returns only when their informer has received the written object.
//
// When a CRD is deleted as soon as it is created, the CRD finalizer finds the
// storage of the custom resources "(re)initializing", reports that in the
// status and checks again after 5 ms. If the informer has not received the new
// status within 5 ms, the finalizer's next write fails with a conflict. The
// finalizer expects an event to follow a conflict, but ignores the event of its
// own status write (crd_finalizer.go), so the CRD stays for five minutes, until
// the informer resyncs. In upstream's program, one in a hundred CRDs that are
// deleted immediately after their creation stays for five minutes; in a plane
// without ownWrites, one in ten stayed, because writes are faster but events
// are not (docs/investigations/2026-11-22-crd-deletion.md).
type ownWrites struct {
	informer atomic.Pointer[cache.SharedIndexInformer]
}

const (
	ownWriteLook = time.Millisecond
	// If no event arrives within ownWriteLimit, the write returns anyway.
	ownWriteLimit = time.Second
)

// client returns a client for the controllers.
func (o *ownWrites) client(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return ownWritesTransport{o, next} })
	return c
}

// from sets the informer from which the controllers read.
func (o *ownWrites) from(i cache.SharedIndexInformer) { o.informer.Store(&i) }

type ownWritesTransport struct {
	*ownWrites
	next http.RoundTripper
}

func (t ownWritesTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	informer := t.informer.Load()
	if err != nil || informer == nil || r.Method != http.MethodPut || response.StatusCode != http.StatusOK {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	t.seen(r.Context(), *informer, body)
	return response, nil
}

// seen returns when the informer has the written object or a newer version of
// it.
func (o *ownWrites) seen(ctx context.Context, informer cache.SharedIndexInformer, body []byte) {
	written, _, err := apiextensionsscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return
	}
	object, err := meta.Accessor(written)
	if err != nil {
		return
	}
	_ = wait.PollUntilContextTimeout(ctx, ownWriteLook, ownWriteLimit, true, func(context.Context) (bool, error) {
		known, exists, err := informer.GetStore().GetByKey(object.GetName())
		if err != nil || !exists {
			return true, err
		}
		has, err := meta.Accessor(known)
		if err != nil {
			return true, err
		}
		order, err := resourceversion.CompareResourceVersion(has.GetResourceVersion(), object.GetResourceVersion())
		return order >= 0, err
	})
}
