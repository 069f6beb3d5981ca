package controller

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// steppedClock is the real clock, and can be moved forward.
type steppedClock struct {
	clock.RealClock
	mu   sync.Mutex
	step time.Duration
}

func newSteppedClock() *steppedClock { return &steppedClock{} }

func (c *steppedClock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step += d
}

func (c *steppedClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.RealClock.Now().Add(c.step)
}

func (c *steppedClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// shortNames returns the short names of StorageBuckets from the API server.
func shortNames(context.Context) []string {
	GinkgoHelper()
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
	list, err := d.ServerResourcesForGroupVersion(storagev1.GroupVersion.String())
	Expect(err).NotTo(HaveOccurred())
	for _, r := range list.APIResources {
		if r.Name == "storagebuckets" {
			return r.ShortNames
		}
	}
	return nil
}
