package m1

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory has the bug of zakkg3/ClusterSecret#48. This index keeps the namespaces of the copies in a
// variable, which is filled when copies are created. After a restart, all copies already exist, so
// none is created, the variable stays empty, and the copies are never deleted.
type memory struct {
	mu     sync.Mutex
	copies map[types.UID][]string
}

func (m *memory) created(s *SharedSecret, namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.copies == nil {
		m.copies = map[types.UID][]string{}
	}
	m.copies[s.UID] = append(m.copies[s.UID], namespace)
}

func (m *memory) where(_ context.Context, s *SharedSecret) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.copies[s.UID], nil
}
