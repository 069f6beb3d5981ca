package m1

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// cluster finds the copies by their labels.
type cluster struct{ client.Reader }

func (c cluster) created(*SharedSecret, string) {}

func (c cluster) where(ctx context.Context, s *SharedSecret) ([]string, error) {
	var all corev1.SecretList
	if err := c.List(ctx, &all, child.Marks(s)); err != nil {
		return nil, err
	}
	var namespaces []string
	for _, o := range all.Items {
		namespaces = append(namespaces, o.Namespace)
	}
	return namespaces, nil
}
