package controller

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/koboshi-dev/koboshi/operators/foo/internal/operator"
)

// runOperator runs an operator with the controllers that add adds to it, until the specs of the
// container have ended. So the specs test the watches, the cache and the queue too.
func runOperator(add func(*operator.Operator) error) {
	GinkgoHelper()
	SetDefaultEventuallyTimeout(time.Minute)
	op, err := operator.New(cfg)
	Expect(err).NotTo(HaveOccurred())
	Expect(add(op)).To(Succeed())

	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	Expect(op.Start(ctx)).To(Succeed())
	go func() { stopped <- op.Run(ctx) }()
	DeferCleanup(func() {
		stop()
		Eventually(stopped).Should(Receive(BeNil()))
	})
}
