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

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"koboshi.example/project/internal/operator"
)

// leaseName is the name of the Lease. config/rbac/leader_election_role.yaml contains the same
// name.
const leaseName = "exampleproject.koboshi.example"

// podNamespace is the file in which a Pod finds its namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// shutdownTimeout limits the time that the workers take to end. It is less than
// terminationGracePeriodSeconds in config/manager/manager.yaml, so that the manager can release
// its Lease before it is killed.
const shutdownTimeout = 30 * time.Second

// lead runs the controllers while this manager is the leader. It returns an error if the
// manager loses its Lease: its workers may still be running then, so the process must exit.
func (o *options) lead(ctx context.Context, op *operator.Operator) error {
	lock, err := o.lock(op)
	if err != nil {
		return err
	}
	// The election ends after the workers, so that the next leader does not start before that.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var failure error
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:            leaseName,
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer stop()
				working, end := context.WithCancel(leading)
				defer end()
				defer context.AfterFunc(ctx, end)()
				failure = work(working, op.Run)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("electing a leader: %w", err)
	}
	context.AfterFunc(ctx, func() {
		if !elector.IsLeader() {
			stop()
		}
	})
	elector.Run(electing)
	if electing.Err() == nil {
		return errors.New("the manager has lost its Lease")
	}
	return failure
}

// work calls run, which runs the controllers until the context ends. Then it waits until their
// workers have ended, but not longer than shutdownTimeout: the process must exit after an error.
func work(ctx context.Context, run func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(shutdownTimeout):
		return fmt.Errorf("the workers have not ended within %s", shutdownTimeout)
	}
}

// lock returns the Lease for which managers compete.
func (o *options) lock(op *operator.Operator) (resourcelock.Interface, error) {
	namespace := o.leaderNamespace
	if namespace == "" {
		data, err := os.ReadFile(podNamespace)
		if err != nil {
			return nil, fmt.Errorf("the namespace of the Lease is not known; name it with --leader-election-namespace: %w", err)
		}
		namespace = strings.TrimSpace(string(data))
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
		Client:     op.Kubernetes.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}
