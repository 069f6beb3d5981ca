package inject

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

// target finds the object with the canonical name in Fault.Target.
func (i *Injection) target() (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	all := i.config.Store.Objects()
	found := i.config.Mask.Find(all, i.fault.Target)
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("there is no %s in this run", i.fault.Target)
	}
	object := &unstructured.Unstructured{Object: all[found[0]]}
	resource, err := i.config.Cluster.Resource(object)
	return object, resource, err
}

func (i *Injection) deleteChild(ctx context.Context) error {
	object, resource, err := i.target()
	if err != nil {
		return err
	}
	return interference.Delete(ctx, resource, object)
}

// editChild changes one field of a child object to another value that the API server
// accepts.
func (i *Injection) editChild(ctx context.Context) error {
	object, resource, err := i.target()
	if err != nil {
		return err
	}
	path := strings.Split(i.fault.Field, ".")
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil || !found {
		return fmt.Errorf("%s has no field %s in this run", i.fault.Target, i.fault.Field)
	}
	others := otherValues(value)
	switch {
	case i.fault.Field == fault.Owners:
		others = []any{nil} // removes all of them
	case i.fault.Field == fault.Labels:
	case object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Secret"):
		others = []any{secretValue()}
	}
	return interference.Edit(ctx, resource, object.GetName(), path, others)
}

// secretValue returns a random value for a key of a Secret. The lab has only a hash of the key's
// current value. The new value must not appear in any text, either.
func secretValue() string {
	value := rand.Text()
	scrub.Known.Add(value) // in base64 as well
	return base64.StdEncoding.EncodeToString([]byte(value))
}

// addFinalizer adds a finalizer to an object and removes it after the next step has come to
// rest.
func (i *Injection) addFinalizer(ctx context.Context) error {
	object, resource, err := i.target()
	if err != nil {
		return err
	}
	name := object.GetName()
	if err := interference.SetFinalizer(ctx, resource, name, true); err != nil {
		return err
	}
	i.keep(i.stepAfter(i.fault.Point.Step), func() {
		_ = interference.SetFinalizer(ctx, resource, name, false) // the object may be gone
	})
	return nil
}
