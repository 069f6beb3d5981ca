package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// dump is the complete state of a bucket.
type dump struct {
	Created    time.Time
	Tags       map[string]string
	Versioning string
	Policy     any
	CORS       []types.CORSRule
	// Objects are all versions and delete markers, each with key, version and ETag.
	Objects []string
	Uploads []string
}

// config returns the dump without the parts that depend on when it was made.
func (d *dump) config() dump {
	c := *d
	c.Created, c.Objects, c.Uploads = time.Time{}, nil, nil
	return c
}

// ask makes one request; it returns nil without an error if the store reports
// that the requested item does not exist.
func ask[In, Out any](ctx context.Context, in *In, f func(context.Context, *In, ...func(*s3.Options)) (*Out, error), absent ...string) (*Out, error) {
	out, err := f(ctx, in)
	var coded smithy.APIError
	if errors.As(err, &coded) {
		for _, code := range absent {
			if coded.ErrorCode() == code {
				return nil, nil
			}
		}
	}
	return out, err
}

// dumpOf reads a bucket; it returns nil if the bucket does not exist.
func dumpOf(ctx context.Context, bucket string) (*dump, error) {
	listed, err := root.ListBuckets(ctx, &s3.ListBucketsInput{Prefix: &bucket})
	if err != nil {
		return nil, err
	}
	for _, b := range listed.Buckets {
		if aws.ToString(b.Name) != bucket {
			continue
		}
		d := &dump{Created: aws.ToTime(b.CreationDate), Tags: map[string]string{}}
		if err := d.readConfig(ctx, bucket); err != nil {
			return nil, fmt.Errorf("dumping %s: %w", bucket, err)
		}
		if err := d.readObjects(ctx, bucket); err != nil {
			return nil, fmt.Errorf("dumping %s: %w", bucket, err)
		}
		return d, nil
	}
	return nil, nil
}

func (d *dump) readConfig(ctx context.Context, bucket string) error {
	tags, err := ask(ctx, &s3.GetBucketTaggingInput{Bucket: &bucket}, root.GetBucketTagging, "NoSuchTagSet")
	if err != nil {
		return err
	}
	if tags != nil {
		for _, tag := range tags.TagSet {
			d.Tags[*tag.Key] = *tag.Value
		}
	}
	versioning, err := root.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &bucket})
	if err != nil {
		return err
	}
	d.Versioning = string(versioning.Status)
	policy, err := ask(ctx, &s3.GetBucketPolicyInput{Bucket: &bucket}, root.GetBucketPolicy, "NoSuchBucketPolicy")
	if err != nil {
		return err
	}
	if policy != nil {
		if err := json.Unmarshal([]byte(aws.ToString(policy.Policy)), &d.Policy); err != nil {
			return err
		}
	}
	cors, err := ask(ctx, &s3.GetBucketCorsInput{Bucket: &bucket}, root.GetBucketCors, "NoSuchCORSConfiguration")
	if err != nil {
		return err
	}
	if cors != nil {
		d.CORS = cors.CORSRules
	}
	return nil
}

func (d *dump) readObjects(ctx context.Context, bucket string) error {
	versions, err := root.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
	if err != nil {
		return err
	}
	for _, v := range versions.Versions {
		d.Objects = append(d.Objects, fmt.Sprint(*v.Key, " ", aws.ToString(v.VersionId), " ", aws.ToString(v.ETag)))
	}
	for _, m := range versions.DeleteMarkers {
		d.Objects = append(d.Objects, fmt.Sprint(*m.Key, " ", aws.ToString(m.VersionId), " deleted"))
	}
	uploads, err := root.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		return err
	}
	for _, u := range uploads.Uploads {
		d.Uploads = append(d.Uploads, fmt.Sprint(*u.Key, " ", *u.UploadId))
	}
	return nil
}

func bucketNames(ctx context.Context) ([]string, error) {
	listed, err := root.ListBuckets(ctx, &s3.ListBucketsInput{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, b := range listed.Buckets {
		names = append(names, *b.Name)
	}
	return names, nil
}

func dumpAll(ctx context.Context, which func(name string) bool) (map[string]*dump, error) {
	names, err := bucketNames(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]*dump{}
	for _, name := range names {
		if !which(name) {
			continue
		}
		if all[name], err = dumpOf(ctx, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// makeForeign creates a bucket of another owner, with an object in it.
func makeForeign(ctx context.Context, bucket string, tags map[string]string) error {
	if err := shop.MakeBucket(ctx, bucket); err != nil {
		return err
	}
	if len(tags) > 0 {
		set := &types.Tagging{}
		for key, value := range tags {
			set.TagSet = append(set.TagSet, types.Tag{Key: &key, Value: &value})
		}
		if _, err := root.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: &bucket, Tagging: set}); err != nil {
			return err
		}
	}
	policy := policyFor(bucket, "s3:GetObject")
	if _, err := root.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: &policy}); err != nil {
		return err
	}
	return putObjects(ctx, bucket, 2)
}

func policyFor(bucket, action string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":%q,"Resource":"arn:aws:s3:::%s/*"}]}`, action, bucket)
}

func putObjects(ctx context.Context, bucket string, count int) error {
	for i := range count {
		key, body := fmt.Sprintf("album/%03d", i), strings.NewReader(fmt.Sprint("picture ", i))
		if _, err := root.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: body}); err != nil {
			return err
		}
	}
	return nil
}

// fill puts into a bucket everything that makes emptying hard: some sixty
// objects, two versions of some, delete markers and an unfinished upload.
func fill(ctx context.Context, bucket string) error {
	for range 2 {
		if err := putObjects(ctx, bucket, 25); err != nil {
			return err
		}
	}
	for i := range 10 {
		key := fmt.Sprintf("album/%03d", i)
		if _, err := root.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key}); err != nil {
			return err
		}
	}
	_, err := root.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: aws.String("big")})
	return err
}

// purge removes a bucket and its content, regardless of its owner.
func purge(ctx context.Context, bucket string) error {
	d, err := dumpOf(ctx, bucket)
	if d == nil || err != nil {
		return err
	}
	versions, err := root.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
	if err != nil {
		return err
	}
	doomed := map[types.ObjectIdentifier]bool{}
	for _, v := range versions.Versions {
		doomed[types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId}] = true
	}
	for _, m := range versions.DeleteMarkers {
		doomed[types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId}] = true
	}
	for o := range maps.Keys(doomed) {
		if _, err := root.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: o.Key, VersionId: o.VersionId}); err != nil {
			return err
		}
	}
	for _, upload := range d.Uploads {
		key, id, _ := strings.Cut(upload, " ")
		if _, err := root.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: &id}); err != nil {
			return err
		}
	}
	_, err = root.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket})
	return err
}
