/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package controller

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"koboshi.example/project/internal/operator"
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
