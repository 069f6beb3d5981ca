package s3store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// Setting is one declared piece of a bucket's configuration.
type Setting struct {
	// Name is the name of the field in the spec.
	Name string
	// Hash identifies the declared value.
	Hash string
	// Keys are the keys of the declared tags; nil for all other settings.
	Keys []string

	value value
}

// value is the declared value of a setting, with the requests that read and write
// it.
type value interface {
	// heldBy reports whether the bucket's configuration means the same as this value.
	heldBy(ctx context.Context, s *Store, bucket string) (bool, error)
	// putInto writes this value to the bucket's configuration.
	putInto(ctx context.Context, s *Store, bucket string) error
}

// kinds are all settings, in the order in which they are applied: versioning comes before
// object lock, which needs versioning; publicAccessBlock comes before policy, because it
// may forbid the policy.
var kinds = []struct {
	name string
	// declared returns the value that the spec declares, or nil if it does not declare the setting.
	// An empty list is treated as not declared, so it never empties the bucket's configuration.
	declared func(*v1.StorageBucketSpec) value
	// remove removes the setting from a bucket. Removing a setting that is absent is not an error.
	// keys are the keys of the tags.
	remove func(ctx context.Context, s *Store, bucket string, keys []string) error
}{
	{"versioning", declaredVersioning, suspendVersioning},
	{"objectLock", declaredObjectLock, removeDefaultRetention},
	{"encryption", declaredEncryption, removeEncryption},
	{"publicAccessBlock", declaredPublicAccessBlock, removePublicAccessBlock},
	{"policy", declaredPolicy, removePolicy},
	{"lifecycle", declaredLifecycle, removeLifecycle},
	{"cors", declaredCORS, removeCORS},
	{"tags", declaredTags, removeTags},
}

// Settings returns the settings that a spec declares, in the order in which they
// must be applied.
func Settings(spec *v1.StorageBucketSpec) []Setting {
	var settings []Setting
	for _, kind := range kinds {
		declared := kind.declared(spec)
		if declared == nil {
			continue
		}
		setting := Setting{Name: kind.name, Hash: hash(declared), value: declared}
		if t, ok := declared.(tags); ok {
			setting.Keys = t.keys()
		}
		settings = append(settings, setting)
	}
	return settings
}

// hash returns a hash of the value's JSON, in which map keys are sorted.
func hash(declared value) string {
	text, err := json.Marshal(declared)
	if err != nil {
		// Only a policy can be invalid JSON, and the API server rejects such a policy.
		text = nil
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Matches reports whether the bucket has the complete setting as declared. Matches compares the
// meaning of the values and not their spelling. If a store has silently dropped a part that it does
// not support, Matches returns false.
func (s *Store) Matches(ctx context.Context, bucket string, setting Setting) (bool, error) {
	return setting.value.heldBy(ctx, s, bucket)
}

// Apply writes the declared setting to the bucket. Tags are added to the existing tags;
// any other setting is replaced completely.
func (s *Store) Apply(ctx context.Context, bucket string, setting Setting) error {
	return setting.value.putInto(ctx, s, bucket)
}

// Remove removes an applied setting from the bucket: versioning is suspended, object
// lock loses its default retention, the applied tags are removed, and anything else is
// deleted. A setting that is absent is treated as removed.
func (s *Store) Remove(ctx context.Context, bucket string, applied v1.AppliedConfiguration) error {
	for _, kind := range kinds {
		if kind.name == applied.Name {
			return kind.remove(ctx, s, bucket, applied.Keys)
		}
	}
	// A newer version of the operator has applied a setting that this version does not
	// support.
	return &Error{Reason: ReasonUnsupported, Message: "this version of the operator does not know a setting that a newer version has applied: upgrade the operator"}
}

// deletion returns a remove function that sends the given request.
func deletion[Answer any](
	request func(ctx context.Context, c *s3.Client, bucket *string) (*Answer, error), absent ...string,
) func(context.Context, *Store, string, []string) error {
	return func(ctx context.Context, s *Store, bucket string, _ []string) error {
		_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*Answer, error) {
			return request(ctx, c, &bucket)
		}, absent...)
		return err
	}
}
