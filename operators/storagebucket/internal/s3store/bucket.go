package s3store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Found is the result of looking for a bucket.
type Found struct {
	// Exists is false only if the store answered with the error code NoSuchBucket.
	Exists bool
	// StoreTime is the time of the response by the store's clock; zero if the response
	// has no date.
	StoreTime time.Time
}

// Find looks for a bucket. Any result other than success or the error code
// NoSuchBucket is an error: a bare 404 may come from a proxy, and must not
// cause a bucket to be created or forgotten.
func (s *Store) Find(ctx context.Context, bucket string) (Found, error) {
	var at time.Time
	err := s.call(ctx, func(ctx context.Context, c *s3.Client) error {
		out, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
		if err == nil {
			at, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
		}
		return err
	})
	switch reason := ReasonOf(err); {
	case err == nil:
		return Found{Exists: true, StoreTime: at}, nil
	case reason.Connection(), reason == ReasonThrottled, reason == ReasonCanceled:
		return Found{}, err
	}
	// A response to HEAD has no body, and so no error code.
	err = s.call(ctx, func(ctx context.Context, c *s3.Client) error {
		out, err := list(ctx, c, &s3.ListObjectsV2Input{Bucket: &bucket, MaxKeys: aws.Int32(1)})
		if err == nil {
			at, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
		} else {
			at = dateOf(err)
		}
		return err
	})
	switch {
	case err == nil:
		return Found{Exists: true, StoreTime: at}, nil
	case codeOf(err) == codeNoSuchBucket:
		return Found{StoreTime: at}, nil
	default:
		return Found{}, err
	}
}

// CreateOptions are the options for creating a bucket.
type CreateOptions struct {
	// Tags are the tags that the bucket has from its creation.
	Tags map[string]string
	// ObjectLock permanently turns on object lock, and versioning with it.
	ObjectLock bool
}

// Create creates a bucket. The tags are sent with the request, so that the bucket never
// exists without an owner. If a store refuses the tags, Create sends a second request
// without them. Some stores drop the tags silently, so the caller must read the tags back.
func (s *Store) Create(ctx context.Context, bucket string, options CreateOptions) error {
	err := s.create(ctx, bucket, options)
	if len(options.Tags) > 0 && (codeOf(err) == "MalformedXML" || ReasonOf(err) == ReasonUnsupported) {
		options.Tags = nil
		err = s.create(ctx, bucket, options)
	}
	return err
}

func (s *Store) create(ctx context.Context, bucket string, options CreateOptions) error {
	return s.call(ctx, func(ctx context.Context, c *s3.Client) error {
		in := &s3.CreateBucketInput{Bucket: &bucket}
		if options.ObjectLock {
			in.ObjectLockEnabledForBucket = aws.Bool(true)
		}
		// For us-east-1, S3 accepts neither a location nor an empty
		// configuration.
		region := c.Options().Region
		if region == "us-east-1" {
			region = ""
		}
		if region != "" || len(options.Tags) > 0 {
			in.CreateBucketConfiguration = &types.CreateBucketConfiguration{
				LocationConstraint: types.BucketLocationConstraint(region),
				Tags:               tagSet(options.Tags),
			}
		}
		_, err := c.CreateBucket(ctx, in)
		return err
	})
}

// Creation returns when a bucket was created, by the store's clock. listed is false if
// the bucket does not belong to the account of the credentials.
func (s *Store) Creation(ctx context.Context, bucket string) (at time.Time, listed bool, err error) {
	// Stores that do not support Prefix and MaxBuckets list all buckets in one response.
	in := &s3.ListBucketsInput{Prefix: &bucket, MaxBuckets: aws.Int32(maxPage)}
	err = eachPage(func() (next string, err error) {
		out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.ListBucketsOutput, error) {
			return c.ListBuckets(ctx, in)
		})
		if err != nil {
			return "", err
		}
		for _, b := range out.Buckets {
			if aws.ToString(b.Name) == bucket {
				at, listed = aws.ToTime(b.CreationDate), true
				return "", nil
			}
		}
		in.ContinuationToken = out.ContinuationToken
		return aws.ToString(in.ContinuationToken), nil
	})
	return at, listed, err
}

// Delete deletes an empty bucket. Delete succeeds if the bucket does not exist; if the bucket is
// not empty, the error has ReasonNotEmpty.
func (s *Store) Delete(ctx context.Context, bucket string) error {
	_, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.DeleteBucketOutput, error) {
		return c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
	}, codeNoSuchBucket)
	return err
}

// Tags reads the tags of a bucket. The map is empty if the bucket has no tags.
func (s *Store) Tags(ctx context.Context, bucket string) (map[string]string, error) {
	out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.GetBucketTaggingOutput, error) {
		return c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &bucket})
	}, "NoSuchTagSet", "NoSuchTagSetError")
	tags := map[string]string{}
	if err != nil || out == nil {
		return tags, err
	}
	for _, tag := range out.TagSet {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags, nil
}

// SetTags replaces all tags of a bucket.
func (s *Store) SetTags(ctx context.Context, bucket string, tags map[string]string) error {
	return s.call(ctx, func(ctx context.Context, c *s3.Client) error {
		if len(tags) == 0 {
			_, err := c.DeleteBucketTagging(ctx, &s3.DeleteBucketTaggingInput{Bucket: &bucket})
			return err
		}
		_, err := c.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{
			Bucket: &bucket, Tagging: &types.Tagging{TagSet: tagSet(tags)},
		}, withMD5)
		return err
	})
}

// tagSet converts tags to the S3 type, always in the same order.
func tagSet(tags map[string]string) []types.Tag {
	var set []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		set = append(set, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return set
}
