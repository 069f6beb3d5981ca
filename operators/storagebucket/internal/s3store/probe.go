package s3store

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Check finds out whether the store is up and accepts the credentials. It sends one signed request
// for the list of buckets. The connection is new, so that an expired certificate or a changed
// address is noticed. Check treats credentials that may not list buckets as accepted. Check also
// treats a store as up if the store's S3 error code means that it does not support this request.
// Check does not wait for the limiter, because the health of the store must not depend on the
// number of probes of its buckets.
func (s *Store) Check(ctx context.Context) Result {
	s.limiter.charge()
	x, failure := s.send(ctx, exchange{fresh: true}, func(ctx context.Context, c *s3.Client) error {
		_, err := c.ListBuckets(ctx, &s3.ListBucketsInput{MaxBuckets: aws.Int32(1)})
		return err
	})
	failure = x.expect("<ListAllMyBucketsResult", failure)
	if failure == nil || failure.Reason == ReasonAccessDenied || (failure.Reason == ReasonUnsupported && failure.code != "") {
		return Result{Reason: ReasonSucceeded, Message: "the store answered", Latency: x.latency()}
	}
	return resultOf(failure, x)
}

// Probe sends a HEAD request for the bucket. A response to HEAD has no body, and so no error code.
// If the response is not success, Probe sends a second request, unless the store asked for fewer
// requests. The response to the second request has a body, and the second request needs the same
// permission as HEAD (s3:ListBucket). The caller of Probe must already have passed the limiter.
func (s *Store) Probe(ctx context.Context, bucket string) Result {
	x, failure := s.send(ctx, exchange{small: true}, func(ctx context.Context, _ *s3.Client) error {
		return s.prober.head(ctx, bucket)
	})
	if failure == nil || x.answer == nil || failure.Reason == ReasonThrottled {
		return resultOf(failure, x)
	}
	s.limiter.charge()
	why, reason := s.send(ctx, exchange{small: true}, func(ctx context.Context, c *s3.Client) error {
		_, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket, MaxKeys: aws.Int32(1)})
		return err
	})
	if why.answer == nil {
		x = why
	}
	return resultOf(why.expect("<ListBucketResult", reason), x)
}

// expect returns the given failure, if any. Without a failure, expect returns an error if
// the response lacks the element: the SDK accepts any document, and even an empty body, as
// an empty list.
func (x *exchange) expect(element string, failure *Error) *Error {
	if failure != nil || bytes.Contains(x.start, []byte(element)) {
		return failure
	}
	return classifyAnswer(answer{status: x.status}, "", time.Now())
}

// resultOf returns the failure, or success if there is none, with the latency of the
// exchange.
func resultOf(failure *Error, x *exchange) Result {
	if failure == nil {
		return Result{Reason: ReasonSucceeded, Message: sentence[ReasonSucceeded], Latency: x.latency()}
	}
	return Result{Reason: failure.Reason, Message: failure.Message, Latency: x.latency(), RetryAfter: failure.RetryAfter}
}

// canaryDelete limits the time to delete the object that Canary wrote.
const canaryDelete = 5 * time.Second

// Canary writes a small object, reads it back and deletes it. The caller chooses the key of the
// object, and must not use it for anything else. The caller of Canary must already have passed the
// limiter. The latency in the result is the latency of the write.
func (s *Store) Canary(ctx context.Context, bucket, key string) Result {
	// The content is random, so that an old object is not mistaken for this one.
	content := []byte(rand.Text())
	var version *string
	put, failure := s.send(ctx, exchange{small: true}, func(ctx context.Context, c *s3.Client) error {
		written, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
		if err == nil {
			// With versioning, a delete request without a version only adds a delete
			// marker.
			version = written.VersionId
		}
		return err
	})
	if failure != nil {
		return resultOf(failure, put)
	}
	var read []byte
	s.limiter.charge()
	_, failure = s.send(ctx, exchange{small: true}, func(ctx context.Context, c *s3.Client) error {
		object, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
		if err != nil {
			return err
		}
		defer func() { _ = object.Body.Close() }()
		read, err = io.ReadAll(io.LimitReader(object.Body, int64(len(content)+1)))
		return err
	})
	if failure == nil && !bytes.Equal(read, content) {
		failure = &Error{Reason: ReasonUnexpectedResponse, Message: "the store returned different content than was written"}
	}
	s.limiter.charge()
	// The deletion has its own timeout, so that the object is deleted even if
	// reading it took too long.
	deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), canaryDelete)
	defer cancel()
	_, undeleted := s.send(deleting, exchange{small: true}, func(ctx context.Context, c *s3.Client) error {
		_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key, VersionId: version})
		return err
	})
	// Another client may already have deleted the object.
	gone := undeleted != nil && (undeleted.code == "NoSuchKey" || undeleted.code == "NoSuchVersion")
	if failure == nil && !gone {
		failure = undeleted
	}
	return resultOf(failure, put)
}
