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

// Check asks whether the store is up and knows the credentials: one signed
// request for the list of buckets on a new connection, so that a certificate
// that has expired, or a name that leads elsewhere, is seen. Credentials that
// may not list buckets are known all the same, and a store that answers, with an S3
// error code, that it has no such list is up. It does not wait for the limiter: the
// store's own health must not depend on the number of probes of its buckets.
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

// Probe asks for the bucket with HEAD. Since a HEAD has no body, and so no
// error code, any other answer than success is followed by one request that
// has both a body and the same permission (s3:ListBucket), unless the store
// asked for fewer requests. The caller has been let through by the limiter.
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

// expect is the failure there was, or that the answer lacks the element: the
// SDK takes any document, and none, for an empty list.
func (x *exchange) expect(element string, failure *Error) *Error {
	if failure != nil || bytes.Contains(x.start, []byte(element)) {
		return failure
	}
	return classifyAnswer(answer{status: x.status}, "", time.Now())
}

// resultOf is a failure, or success, with the latency of an exchange.
func resultOf(failure *Error, x *exchange) Result {
	if failure == nil {
		return Result{Reason: ReasonSucceeded, Message: sentence[ReasonSucceeded], Latency: x.latency()}
	}
	return Result{Reason: failure.Reason, Message: failure.Message, Latency: x.latency(), RetryAfter: failure.RetryAfter}
}

// canaryDelete bounds the deletion of a canary's object.
const canaryDelete = 5 * time.Second

// Canary writes a small object, reads it back and deletes it. The object's
// name is the caller's to choose, and to keep from being used for anything
// else. The caller has been let through by the limiter. The latency is that of
// the write.
func (s *Store) Canary(ctx context.Context, bucket, key string) Result {
	// Random, so that an old object is not taken for the one just written.
	content := []byte(rand.Text())
	var version *string
	put, failure := s.send(ctx, exchange{small: true}, func(ctx context.Context, c *s3.Client) error {
		written, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
		if err == nil {
			// With versioning, a delete that names none only adds to the heap.
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
		failure = &Error{Reason: ReasonUnexpectedResponse, Message: "the store gave back another content than was written"}
	}
	s.limiter.charge()
	// With a timeout of its own: the object must not stay because reading it took
	// too long.
	deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), canaryDelete)
	defer cancel()
	_, undeleted := s.send(deleting, exchange{small: true}, func(ctx context.Context, c *s3.Client) error {
		_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key, VersionId: version})
		return err
	})
	if failure == nil {
		failure = undeleted
	}
	return resultOf(failure, put)
}
