// Package oncluster runs a check as Jobs of a cluster, for koboshi check --on-cluster.
//
//	preflight ─▶ objects ─▶ Job NAME-plan ───document──▶ ConfigMap NAME-plan ─▶ Job NAME, with a Pod per shard
//	                          one Pod learns the plan        mounted into all        each runs its part of the plan
//	                                                                                      │ document
//	merged report  ◀──────────────────────────────────────────────────────────────────────┘
//
// A document is a compressed JSON file in one or more ConfigMaps. The Job NAME owns everything else, and is
// created first, but suspended; so deleting it deletes everything, and if this process dies, the cluster deletes
// it some time after it has ended.
//
// A Pod may only create ConfigMaps. It reads its plan from a volume.
package oncluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Options describes the check, and the cluster that runs it.
type Options struct {
	Client    kubernetes.Interface
	Namespace string
	// Image is an image that koboshi ship --check-image has made.
	Image  string
	Shards int
	// CPU and Memory are what each Pod requests.
	CPU, Memory resource.Quantity
	// PlanArgs and ShardArgs are the flags of the check in the Pod that learns the plan, and in the shards.
	PlanArgs, ShardArgs []string
	// Keep leaves everything in the cluster.
	Keep     bool
	Observer Observer
}

// Observer is notified of progress, from one goroutine.
type Observer interface {
	Phase(name string)
	Note(text string)
	// Planned is called once the plan is known.
	Planned(*Plan)
	// Ended is called when a shard, counted from 1, has ended. If part is nil, why is the reason.
	Ended(shard int, part *Part, why string)
}

// Result holds the results of all shards.
type Result struct {
	Plan *Plan
	// Parts has the result of each shard, or nil, and Failed the reason for each shard that has none, counted
	// from 1.
	Parts  []*Part
	Failed map[int]string
}

// HasParts reports whether a shard has a result.
func (r *Result) HasParts() bool {
	return r != nil && slices.ContainsFunc(r.Parts, func(p *Part) bool { return p != nil })
}

// toDelete limits how long it may take to delete everything after the check.
const toDelete = 30 * time.Second

// Run runs a check. If it returns an error once shards have ended, it also returns their results.
func Run(ctx context.Context, o Options) (*Result, error) {
	r := &run{Options: o, name: newName()}
	o.Observer.Phase("asking the cluster in namespace " + o.Namespace)
	if err := r.preflight(ctx); err != nil {
		return nil, err
	}
	defer r.end(ctx)
	if err := r.create(ctx); err != nil {
		return nil, err
	}
	learnt, err := r.learn(ctx)
	if err != nil {
		return nil, err
	}
	o.Observer.Planned(learnt)
	return r.shards(ctx, learnt)
}

// run is one call of Run.
type run struct {
	Options
	name  string
	owner metav1.OwnerReference // the Job of the shards, once it exists
}

// newName returns a name that no other check has.
func newName() string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	return "koboshi-check-" + hex.EncodeToString(random)
}

// create creates the suspended Job that owns everything, and what the Pods need.
func (r *run) create(ctx context.Context) error {
	job, err := r.Client.BatchV1().Jobs(r.Namespace).Create(ctx, r.shardJob(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the Job: %w", err)
	}
	r.owner = ownedBy(job.Name, job.UID)
	if _, err := r.Client.CoreV1().ServiceAccounts(r.Namespace).Create(ctx, r.account(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the ServiceAccount: %w", err)
	}
	if _, err := r.Client.RbacV1().Roles(r.Namespace).Create(ctx, r.role(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the Role: %w", err)
	}
	if _, err := r.Client.RbacV1().RoleBindings(r.Namespace).Create(ctx, r.binding(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the RoleBinding: %w", err)
	}
	return nil
}

// learn learns the plan in one Pod.
func (r *run) learn(ctx context.Context) (*Plan, error) {
	r.Observer.Phase("learning the plan in one Pod")
	job := r.planJob()
	if _, err := r.Client.BatchV1().Jobs(r.Namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating the Job that learns the plan: %w", err)
	}
	var d Document
	var why string
	err := r.await(ctx, job.Name, 1, func(_ int, ended Document, reason string) { d, why = ended, reason })
	switch {
	case err != nil:
		return nil, fmt.Errorf("learning the plan: %w", err)
	case d.Plan == nil:
		return nil, fmt.Errorf("learning the plan: %s", why)
	}
	return d.Plan, nil
}

// shards gives the plan to the shards, and waits for their results.
func (r *run) shards(ctx context.Context, learnt *Plan) (*Result, error) {
	packed, err := pack(Document{Plan: learnt})
	if err != nil {
		return nil, err
	}
	if len(packed) > largestPiece {
		return nil, fmt.Errorf("the plan has %d faults, which do not fit into a ConfigMap; check fewer scenarios, or fewer kinds of faults with --faults", len(learnt.Faults))
	}
	if _, err := r.Client.CoreV1().ConfigMaps(r.Namespace).Create(ctx, r.planMap(packed), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("storing the plan: %w", err)
	}
	start := []byte(`{"spec":{"suspend":false}}`)
	if _, err := r.Client.BatchV1().Jobs(r.Namespace).Patch(ctx, r.name, types.MergePatchType, start, metav1.PatchOptions{}); err != nil {
		return nil, fmt.Errorf("starting the Job: %w", err)
	}
	r.Observer.Phase(fmt.Sprintf("injecting faults in %d Pods of the Job %s", r.Shards, r.name))
	result := &Result{Plan: learnt, Parts: make([]*Part, r.Shards), Failed: map[int]string{}}
	err = r.await(ctx, r.name, r.Shards, func(index int, d Document, why string) {
		if result.Parts[index] = d.Part; d.Part == nil {
			result.Failed[index+1] = why
		}
		r.Observer.Ended(index+1, d.Part, why)
	})
	return result, err
}

// end deletes the Job, and the cluster everything that belongs to it. It also does so after an interruption. If
// that fails, the results are still good.
func (r *run) end(ctx context.Context) {
	if r.owner.Name == "" {
		return
	}
	remove := fmt.Sprintf("kubectl delete job %s --namespace %s", r.name, r.Namespace)
	if r.Keep {
		r.Observer.Note("everything is left in the cluster; delete it with: " + remove)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), toDelete)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := r.Client.BatchV1().Jobs(r.Namespace).Delete(ctx, r.name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		r.Observer.Note(fmt.Sprintf("the Job is left in the cluster: %v; delete it with: %s", err, remove))
	}
}

// Identity identifies the Pod that stores a document.
type Identity struct {
	Namespace string
	Job       string
	JobUID    types.UID
	Pod       string // its UID
	Index     int
}

// Publish stores a document. A Pod calls it.
func Publish(ctx context.Context, client kubernetes.Interface, d Document, by Identity) error {
	pieces, err := piecesOf(d, by)
	if err != nil {
		return err
	}
	for _, piece := range pieces {
		if err := publish(ctx, client, piece); err != nil {
			return fmt.Errorf("storing the result: %w", err)
		}
	}
	return nil
}

// publish creates a ConfigMap. If it exists, an earlier request has created it whose response was lost.
func publish(ctx context.Context, client kubernetes.Interface, piece *corev1.ConfigMap) error {
	return persist(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps(piece.Namespace).Create(ctx, piece, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// ReadPlan reads the plan of the shards from the file in a Pod.
func ReadPlan(packed []byte) (*Plan, error) {
	d, err := unpack(packed)
	if err == nil && d.Plan == nil {
		err = errors.New("it has no plan")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	return d.Plan, nil
}
