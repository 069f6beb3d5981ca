package s3store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// ownTags are the tags of the operator, which identify the owner of the bucket.
const ownTags = "storage.koboshi.dev/"

// tags are the declared tags, and never include the operator's own.
type tags map[string]string

func declaredTags(spec *v1.StorageBucketSpec) value {
	declared := tags{}
	for key, value := range spec.Tags {
		if !strings.HasPrefix(key, ownTags) {
			declared[key] = string(value)
		}
	}
	if len(declared) == 0 {
		return nil
	}
	return declared
}

func (t tags) keys() []string { return slices.Sorted(maps.Keys(t)) }

func (t tags) heldBy(ctx context.Context, s *Store, bucket string) (bool, error) {
	has, err := s.Tags(ctx, bucket)
	if err != nil {
		return false, err
	}
	return t.within(has), nil
}

func (t tags) within(has map[string]string) bool {
	for key, want := range t {
		if got, ok := has[key]; !ok || got != want {
			return false
		}
	}
	return true
}

func (t tags) putInto(ctx context.Context, s *Store, bucket string) error {
	has, err := s.Tags(ctx, bucket)
	if err != nil || t.within(has) {
		return err
	}
	maps.Copy(has, t)
	return s.SetTags(ctx, bucket, has)
}

// removeTags removes the tags with the given keys and keeps all others. removeTags never removes
// the operator's tags, even if their keys are given.
func removeTags(ctx context.Context, s *Store, bucket string, keys []string) error {
	has, err := s.Tags(ctx, bucket)
	if err != nil {
		return err
	}
	before := len(has)
	for _, key := range keys {
		if !strings.HasPrefix(key, ownTags) {
			delete(has, key)
		}
	}
	if len(has) == before {
		return nil
	}
	return s.SetTags(ctx, bucket, has)
}

const codeNoLifecycle = "NoSuchLifecycleConfiguration"

// lifecycle is sorted by ID: the order of the rules has no meaning.
type lifecycle []v1.LifecycleRule

func declaredLifecycle(spec *v1.StorageBucketSpec) value {
	if len(spec.Lifecycle) == 0 {
		return nil
	}
	return lifecycle(slices.SortedFunc(slices.Values(spec.Lifecycle), byID))
}

func byID(a, b v1.LifecycleRule) int { return strings.Compare(a.ID, b.ID) }

func (l lifecycle) heldBy(ctx context.Context, s *Store, bucket string) (bool, error) {
	out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.GetBucketLifecycleConfigurationOutput, error) {
		return c.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &bucket})
	}, codeNoLifecycle)
	if out == nil {
		return false, err
	}
	has := lifecycle{}
	for _, r := range out.Rules {
		rule, ok := declarable(r)
		if !ok {
			return false, nil
		}
		has = append(has, rule)
	}
	slices.SortFunc(has, byID)
	return slices.EqualFunc(has, l, sameRule), nil
}

func sameRule(a, b v1.LifecycleRule) bool {
	same := func(a, b *int32) bool { return aws.ToInt32(a) == aws.ToInt32(b) }
	return a.ID == b.ID && a.Disabled == b.Disabled && a.Prefix == b.Prefix &&
		a.ExpiredObjectDeleteMarker == b.ExpiredObjectDeleteMarker && same(a.ExpirationDays, b.ExpirationDays) &&
		same(a.NoncurrentVersionExpirationDays, b.NoncurrentVersionExpirationDays) &&
		same(a.AbortIncompleteMultipartUploadDays, b.AbortIncompleteMultipartUploadDays)
}

// declarable converts a store's rule to the form of the spec. declarable returns false for a rule
// with an action or a restriction that cannot be declared.
func declarable(r types.LifecycleRule) (v1.LifecycleRule, bool) {
	rule := v1.LifecycleRule{ID: aws.ToString(r.ID), Disabled: r.Status != types.ExpirationStatusEnabled}
	prefix, plain := prefixOf(r)
	if !plain || len(r.Transitions) > 0 || len(r.NoncurrentVersionTransitions) > 0 {
		return rule, false
	}
	rule.Prefix = prefix
	if e := r.Expiration; e != nil {
		if e.Date != nil {
			return rule, false
		}
		rule.ExpirationDays, rule.ExpiredObjectDeleteMarker = e.Days, aws.ToBool(e.ExpiredObjectDeleteMarker)
	}
	if e := r.NoncurrentVersionExpiration; e != nil {
		if aws.ToInt32(e.NewerNoncurrentVersions) > 0 {
			return rule, false
		}
		rule.NoncurrentVersionExpirationDays = e.NoncurrentDays
	}
	if a := r.AbortIncompleteMultipartUpload; a != nil {
		rule.AbortIncompleteMultipartUploadDays = a.DaysAfterInitiation
	}
	return rule, true
}

// prefixOf returns the prefix of a store's rule. The prefix may be in the deprecated field
// or in one of two places in the filter. plain is false if the rule has any other
// restriction.
func prefixOf(r types.LifecycleRule) (prefix string, plain bool) {
	prefix = aws.ToString(r.Prefix) //nolint:staticcheck // Deprecated for writing; stores still send it.
	f := r.Filter
	if f == nil {
		return prefix, true
	}
	if f.Prefix != nil {
		prefix = *f.Prefix
	}
	if and := f.And; and != nil {
		if and.Prefix != nil {
			prefix = *and.Prefix
		}
		if len(and.Tags) > 0 || aws.ToInt64(and.ObjectSizeGreaterThan) > 0 || and.ObjectSizeLessThan != nil {
			return "", false
		}
	}
	return prefix, f.Tag == nil && aws.ToInt64(f.ObjectSizeGreaterThan) == 0 && f.ObjectSizeLessThan == nil
}

func (l lifecycle) putInto(ctx context.Context, s *Store, bucket string) error {
	var rules []types.LifecycleRule
	for _, r := range l {
		rules = append(rules, writeRule(r))
	}
	_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.PutBucketLifecycleConfigurationOutput, error) {
		return c.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{
			Bucket: &bucket, LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: rules},
		}, withMD5)
	})
	return err
}

func writeRule(r v1.LifecycleRule) types.LifecycleRule {
	rule := types.LifecycleRule{
		ID:     aws.String(r.ID),
		Status: types.ExpirationStatusEnabled,
		Filter: &types.LifecycleRuleFilter{Prefix: aws.String(r.Prefix)},
	}
	if r.Disabled {
		rule.Status = types.ExpirationStatusDisabled
	}
	switch {
	case r.ExpirationDays != nil:
		rule.Expiration = &types.LifecycleExpiration{Days: r.ExpirationDays}
	case r.ExpiredObjectDeleteMarker:
		rule.Expiration = &types.LifecycleExpiration{ExpiredObjectDeleteMarker: aws.Bool(true)}
	}
	if days := r.NoncurrentVersionExpirationDays; days != nil {
		rule.NoncurrentVersionExpiration = &types.NoncurrentVersionExpiration{NoncurrentDays: days}
	}
	if days := r.AbortIncompleteMultipartUploadDays; days != nil {
		rule.AbortIncompleteMultipartUpload = &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: days}
	}
	return rule
}

var removeLifecycle = deletion(func(ctx context.Context, c *s3.Client, bucket *string) (*s3.DeleteBucketLifecycleOutput, error) {
	return c.DeleteBucketLifecycle(ctx, &s3.DeleteBucketLifecycleInput{Bucket: bucket})
}, codeNoLifecycle)

const codeNoCORS = "NoSuchCORSConfiguration"

// cors keeps its declared order, because the first matching rule applies.
type cors []v1.CORSRule

func declaredCORS(spec *v1.StorageBucketSpec) value {
	if len(spec.CORS) == 0 {
		return nil
	}
	return cors(spec.CORS)
}

func (l cors) heldBy(ctx context.Context, s *Store, bucket string) (bool, error) {
	out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.GetBucketCorsOutput, error) {
		return c.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: &bucket})
	}, codeNoCORS)
	if out == nil {
		return false, err
	}
	return slices.EqualFunc(l, out.CORSRules, func(want v1.CORSRule, has types.CORSRule) bool {
		return sameSet(want.AllowedOrigins, has.AllowedOrigins) && sameSet(want.AllowedMethods, has.AllowedMethods) &&
			sameSet(want.AllowedHeaders, has.AllowedHeaders) && sameSet(want.ExposeHeaders, has.ExposeHeaders) &&
			aws.ToInt32(want.MaxAgeSeconds) == aws.ToInt32(has.MaxAgeSeconds)
	}), nil
}

// sameSet compares lists in which order and repetition have no meaning.
func sameSet(a, b []string) bool {
	set := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	return slices.Equal(set(a), set(b))
}

func (l cors) putInto(ctx context.Context, s *Store, bucket string) error {
	var rules []types.CORSRule
	for _, r := range l {
		rules = append(rules, types.CORSRule{
			AllowedOrigins: r.AllowedOrigins,
			AllowedMethods: r.AllowedMethods,
			AllowedHeaders: r.AllowedHeaders,
			ExposeHeaders:  r.ExposeHeaders,
			MaxAgeSeconds:  r.MaxAgeSeconds,
		})
	}
	_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.PutBucketCorsOutput, error) {
		return c.PutBucketCors(ctx, &s3.PutBucketCorsInput{
			Bucket: &bucket, CORSConfiguration: &types.CORSConfiguration{CORSRules: rules},
		}, withMD5)
	})
	return err
}

var removeCORS = deletion(func(ctx context.Context, c *s3.Client, bucket *string) (*s3.DeleteBucketCorsOutput, error) {
	return c.DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: bucket})
}, codeNoCORS)
