package m1

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// memory is the bug of zakkg3/ClusterSecret#48: where there are copies is written
// down when they are made, in a variable. After a restart they are all there
// already, none is made, and none will be deleted.
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
