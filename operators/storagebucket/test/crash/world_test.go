package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// The tags that identify the owner of a bucket are repeated here, so that a test fails if
// the operator changes them: with different tags, the operator would no longer recognize
// the buckets of its users.
const (
	tagCluster = "storage.koboshi.dev/cluster"
	tagUID     = "storage.koboshi.dev/uid"
	tagOrigin  = "storage.koboshi.dev/origin"
)

// world holds the objects of one run: an ObjectStore, a StorageBucket, a bucket of the same
// name, and the bystander, which is another bucket whose name begins with that name.
type world struct {
	*series
	name string
	// uid is the UID of the StorageBucket.
	uid string
	// base is the content of a bucket before it was given to the operator, or before the
	// operator had to release it.
	base *dump
	// foreign is the content of a bucket of the same name that another client created.
	foreign *dump
	// neighbour is the dump of the bystander's content.
	neighbour *dump
}

func (w *world) neighbourName() string { return w.name + "-x" }

// begin creates the ObjectStore and the bystander.
func (w *world) begin(ctx context.Context) error {
	if err := makeForeign(ctx, w.neighbourName(), map[string]string{"team": "next-door"}); err != nil {
		return err
	}
	var err error
	if w.neighbour, err = dumpOf(ctx, w.neighbourName()); err != nil {
		return err
	}
	return api.Create(ctx, &storagev1.ObjectStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name},
		Spec: storagev1.ObjectStoreSpec{
			Endpoint:    w.endpoint,
			Credentials: storagev1.Credentials{SecretRef: &storagev1.SecretReference{Name: "credentials"}},
		},
	})
}

// end makes the operator remove what is left of the run.
func (w *world) end(ctx context.Context) error {
	for _, o := range []client.Object{&storagev1.StorageBucket{}, &storagev1.ObjectStore{}} {
		o.SetNamespace(w.namespace)
		o.SetName(w.name)
		if err := api.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := w.untilGone(ctx, o); err != nil {
			return fmt.Errorf("deleting the %T at the end: %w", o, err)
		}
	}
	return errors.Join(purge(ctx, w.name), purge(ctx, w.neighbourName()))
}

func (w *world) untilGone(ctx context.Context, o client.Object) error {
	return poll(ctx, func() error {
		err := api.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.name}, o)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return fmt.Errorf("the object still exists, with the finalizers %q", o.GetFinalizers())
		}
	})
}

// poll waits until the check finds no problem.
func poll(ctx context.Context, wrong func() error) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := wrong()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

func (w *world) storeReady(ctx context.Context) error {
	var store storagev1.ObjectStore
	if err := api.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.name}, &store); err != nil {
		return err
	}
	return wrongCondition(store.Status.Conditions, storagev1.ConditionReady, metav1.ConditionTrue, "Available", store.Generation)
}

func wrongCondition(all []metav1.Condition, kind string, status metav1.ConditionStatus, reason string, generation int64) error {
	c := meta.FindStatusCondition(all, kind)
	if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != generation {
		return fmt.Errorf("condition %s is %+v, want %s %s of generation %d", kind, c, status, reason, generation)
	}
	return nil
}

// declare creates the StorageBucket, or changes its spec.
func (w *world) declare(ctx context.Context, spec storagev1.StorageBucketSpec) error {
	b := &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name}, Spec: spec}
	if w.uid == "" {
		err := api.Create(ctx, b)
		w.uid = string(b.UID)
		return err
	}
	before, err := w.bucket(ctx)
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	after.Spec = spec
	return api.Patch(ctx, after, client.MergeFrom(before))
}

func (w *world) annotate(ctx context.Context, key, value string) error {
	before, err := w.bucket(ctx)
	if err != nil {
		return err
	}
	after := before.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, value)
	return api.Patch(ctx, after, client.MergeFrom(before))
}

func (w *world) remove(ctx context.Context) error {
	return api.Delete(ctx, &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.name}})
}

func (w *world) bucket(ctx context.Context) (*storagev1.StorageBucket, error) {
	var b storagev1.StorageBucket
	err := api.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.name}, &b)
	return &b, err
}

// managed returns a spec without configuration.
func (w *world) managed(policy storagev1.DeletionPolicy, forceEmpty bool) storagev1.StorageBucketSpec {
	return storagev1.StorageBucketSpec{
		StoreRef:       &storagev1.ObjectStoreReference{Name: w.name},
		Management:     storagev1.Manage,
		DeletionPolicy: policy,
		ForceEmpty:     forceEmpty,
		Probe:          storagev1.ProbeSpec{Interval: metav1.Duration{Duration: time.Second}},
	}
}

// configured returns a spec with all the configuration that the store supports.
func (w *world) configured(policy storagev1.DeletionPolicy, forceEmpty bool) storagev1.StorageBucketSpec {
	spec := w.managed(policy, forceEmpty)
	spec.Versioning = storagev1.VersioningEnabled
	spec.Tags = map[string]storagev1.TagValue{"team": "photos", "stage": "test"}
	spec.Policy = &apiextensionsv1.JSON{Raw: []byte(policyFor(w.name, "s3:PutObject"))}
	spec.CORS = []storagev1.CORSRule{{AllowedOrigins: []string{"https://example.com"}, AllowedMethods: []string{"GET", "PUT"}}}
	return spec
}

// ready returns an error if the StorageBucket's status is not Ready, or if the bucket
// differs from the spec.
func (w *world) ready(ctx context.Context, state storagev1.ExternalState) error {
	b, err := w.bucket(ctx)
	if err != nil {
		return err
	}
	for kind, reason := range map[string]string{
		storagev1.ConditionReady: "Available", storagev1.ConditionSynced: "InSync", storagev1.ConditionHealthy: "ProbeSucceeded",
	} {
		if err := wrongCondition(b.Status.Conditions, kind, metav1.ConditionTrue, reason, b.Generation); err != nil {
			return err
		}
	}
	e := b.Status.External
	switch {
	case b.Status.ObservedGeneration != b.Generation:
		return errors.New("observedGeneration is out of date")
	case !slices.Equal(b.Finalizers, []string{storagev1.Finalizer}):
		return fmt.Errorf("the finalizers are %q", b.Finalizers)
	case e == nil || e.State != state || e.BucketName != w.name || e.Endpoint != w.endpoint || e.Since.IsZero():
		return fmt.Errorf("status.external is %+v", e)
	}
	if diff := cmp.Diff(declaredNames(&b.Spec), appliedNames(b)); diff != "" {
		return fmt.Errorf("the applied settings differ from the declared ones: -want +got\n%s", diff)
	}
	if err := w.storeHeld(ctx, true); err != nil {
		return err
	}
	return w.holds(ctx, &b.Spec, state)
}

func declaredNames(spec *storagev1.StorageBucketSpec) []string {
	names := []string{}
	for name, declared := range map[string]bool{
		"versioning": spec.Versioning != "", "tags": len(spec.Tags) > 0, "policy": spec.Policy != nil, "cors": len(spec.CORS) > 0,
	} {
		if declared {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func appliedNames(b *storagev1.StorageBucket) []string {
	names := []string{}
	for _, a := range b.Status.Applied {
		names = append(names, a.Name)
	}
	return names
}

// holds compares the bucket in the store with the spec, and with its content before the
// spec was applied.
func (w *world) holds(ctx context.Context, spec *storagev1.StorageBucketSpec, state storagev1.ExternalState) error {
	got, err := dumpOf(ctx, w.name)
	if err != nil {
		return err
	}
	if got == nil {
		return errors.New("the bucket does not exist")
	}
	want := dump{Tags: map[string]string{}}
	if w.base != nil {
		want = w.base.config()
		want.Tags = maps.Clone(want.Tags)
		if diff := cmp.Diff(w.base.Objects, got.Objects); diff != "" {
			return fmt.Errorf("the objects have changed: -want +got\n%s", diff)
		}
	}
	want.Tags[tagCluster], want.Tags[tagUID], want.Tags[tagOrigin] = clusterID, w.uid, strings.ToLower(string(state))
	for key, value := range spec.Tags {
		want.Tags[key] = string(value)
	}
	if spec.Versioning != "" {
		want.Versioning = string(spec.Versioning)
	}
	if spec.Policy != nil {
		if err := json.Unmarshal(spec.Policy.Raw, &want.Policy); err != nil {
			return err
		}
	}
	for _, r := range spec.CORS {
		want.CORS = append(want.CORS, types.CORSRule{AllowedOrigins: r.AllowedOrigins, AllowedMethods: r.AllowedMethods})
	}
	has := got.config()
	if spec.Versioning == "" && want.Versioning == "" && has.Versioning == string(storagev1.VersioningSuspended) {
		// After versioning was enabled once, it can only be suspended.
		has.Versioning = ""
	}
	if diff := cmp.Diff(want, has, asCORS...); diff != "" {
		return fmt.Errorf("the bucket's configuration is wrong: -want +got\n%s", diff)
	}
	return nil
}

var asCORS = []cmp.Option{cmpopts.IgnoreUnexported(types.CORSRule{}), cmpopts.EquateEmpty()}

// storeHeld checks that the ObjectStore has the finalizer if held is true, and does not
// have it otherwise. The finalizer must stay as long as buckets in the store are managed.
func (w *world) storeHeld(ctx context.Context, held bool) error {
	var store storagev1.ObjectStore
	if err := api.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: w.name}, &store); err != nil {
		return err
	}
	if slices.Contains(store.Finalizers, storagev1.Finalizer) != held {
		return fmt.Errorf("the finalizers of the store are %q", store.Finalizers)
	}
	return nil
}

// gone returns an error while the StorageBucket still exists, or if the bucket has changed
// since kept was recorded. If kept is nil, the bucket must be deleted as well.
func (w *world) gone(ctx context.Context, kept *dump) error {
	if b, err := w.bucket(ctx); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the StorageBucket still exists, with the finalizers %q: %w", b.Finalizers, err)
	}
	if err := w.storeHeld(ctx, false); err != nil {
		return err
	}
	return w.untouched(ctx, w.name, kept)
}

// conflicted checks that the StorageBucket reports that the bucket belongs to another
// owner, and that the bucket is unchanged.
func (w *world) conflicted(ctx context.Context) error {
	b, err := w.bucket(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []string{storagev1.ConditionSynced, storagev1.ConditionReady} {
		if err := wrongCondition(b.Status.Conditions, kind, metav1.ConditionFalse, "OwnershipConflict", b.Generation); err != nil {
			return err
		}
	}
	return w.untouched(ctx, w.name, w.foreign)
}

// untouched compares a bucket with its earlier state, including all versions.
func (w *world) untouched(ctx context.Context, name string, before *dump) error {
	after, err := dumpOf(ctx, name)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after, asCORS...); diff != "" {
		return fmt.Errorf("bucket %s has changed: -before +after\n%s", name, diff)
	}
	return nil
}

// accounted checks that no foreign bucket was touched, and that each bucket
// belongs to a StorageBucket.
func (w *world) accounted(ctx context.Context) error {
	for name, before := range bystanders {
		if err := w.untouched(ctx, name, before); err != nil {
			return err
		}
	}
	if err := w.untouched(ctx, w.neighbourName(), w.neighbour); err != nil {
		return err
	}
	names, err := bucketNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, w.namespace) || name == w.neighbourName() {
			continue
		}
		if name == w.name && (w.foreign != nil || w.base != nil) {
			// The test itself created this bucket, or expects it to be kept.
			continue
		}
		b, err := w.bucket(ctx)
		if err != nil || name != w.name || b.Status.External == nil {
			return fmt.Errorf("bucket %s is an orphan: %w", name, err)
		}
	}
	return nil
}

// note records the content of the bucket.
func (w *world) note(ctx context.Context) (*dump, error) {
	d, err := dumpOf(ctx, w.name)
	if d == nil && err == nil {
		err = errors.New("there is no bucket to record")
	}
	return d, err
}

// describe describes the state for failure messages.
func (w *world) describe(ctx context.Context) string {
	b, err := w.bucket(ctx)
	if err != nil {
		return err.Error()
	}
	b.ManagedFields = nil
	text, _ := yaml.Marshal(b)
	d, err := dumpOf(ctx, w.name)
	return fmt.Sprintf("%s\nbucket: %+v %v", text, d, err)
}
