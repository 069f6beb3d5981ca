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
	"hash/fnv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// dueTimes wakes a controller for objects whose state outside the cluster must be checked.
// No watch reports a change there. Only the leader's controllers run, so dueTimes is a
// Runnable that only the leader runs too.
//
// ctrl.Result.RequeueAfter could do the same for one object. With many objects, all of them
// would be due at the same time again after each restart. The due times of an object depend
// only on its UID and the clock, so they stay spread.
type dueTimes struct {
	interval time.Duration
	waiting  workqueue.TypedDelayingInterface[types.NamespacedName]
	events   chan event.GenericEvent
}

func newDueTimes(interval time.Duration) *dueTimes {
	return &dueTimes{
		interval: interval,
		waiting:  workqueue.NewTypedDelayingQueue[types.NamespacedName](),
		events:   make(chan event.GenericEvent),
	}
}

// plan makes the object due at its next due time.
func (d *dueTimes) plan(obj client.Object) {
	d.waiting.AddAfter(client.ObjectKeyFromObject(obj), untilDue(obj.GetUID(), d.interval, time.Now()))
}

// Start sends an event for each object that is due, until the context ends.
func (d *dueTimes) Start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, d.waiting.ShutDown)
	defer stop()
	for {
		key, ended := d.waiting.Get()
		if ended {
			return nil
		}
		d.waiting.Done(key)
		obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		select {
		case d.events <- event.GenericEvent{Object: obj}:
		case <-ctx.Done():
			return nil
		}
	}
}

// NeedLeaderElection makes the manager start dueTimes only when it has become the leader.
func (d *dueTimes) NeedLeaderElection() bool { return true }

// untilDue returns the time from now to the next due time of an object. There is one due
// time in each interval.
func untilDue(uid types.UID, interval time.Duration, now time.Time) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid))
	offset := time.Duration(hash.Sum32()) % interval
	return interval - (time.Duration(now.UnixNano())-offset)%interval
}
