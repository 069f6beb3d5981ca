package controller

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// makeBucket and the functions below act as another client of the store, independent of
// the operator.

func (w *world) makeBucket(ctx context.Context, name string) {
	GinkgoHelper()
	_, err := w.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(name)})
	Expect(err).NotTo(HaveOccurred())
}

func (w *world) putObject(ctx context.Context, bucket, key string) {
	GinkgoHelper()
	_, err := w.s3.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader("content of " + key)})
	Expect(err).NotTo(HaveOccurred())
}

func (w *world) setTags(ctx context.Context, bucket string, tags map[string]string) {
	GinkgoHelper()
	var set []s3types.Tag
	for k, v := range tags {
		set = append(set, s3types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	_, err := w.s3.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: &bucket, Tagging: &s3types.Tagging{TagSet: set}})
	Expect(err).NotTo(HaveOccurred())
}

// exists reports whether the store has the bucket.
func (w *world) exists(ctx context.Context, bucket string) bool {
	GinkgoHelper()
	_, err := w.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket})
	if codeOf(err) == "NoSuchBucket" {
		return false
	}
	Expect(err).NotTo(HaveOccurred())
	return true
}

func (w *world) tags(ctx context.Context, bucket string) map[string]string {
	GinkgoHelper()
	out, err := w.s3.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &bucket})
	if codeOf(err) == "NoSuchTagSet" {
		return map[string]string{}
	}
	Expect(err).NotTo(HaveOccurred())
	tags := map[string]string{}
	for _, t := range out.TagSet {
		tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return tags
}

func (w *world) objects(ctx context.Context, bucket string) []string {
	GinkgoHelper()
	out, err := w.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket})
	Expect(err).NotTo(HaveOccurred())
	keys := []string{}
	for _, o := range out.Contents {
		keys = append(keys, aws.ToString(o.Key))
	}
	return keys
}

func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// writes returns the operator's requests that change something.
func (w *world) writes() []string {
	var lines []string
	for _, r := range w.server.Requests() {
		if r.Method != "GET" && r.Method != "HEAD" {
			lines = append(lines, r.String())
		}
	}
	return lines
}

// requestsFor returns the number of the operator's requests for a bucket.
func (w *world) requestsFor(bucket string) int {
	n := 0
	for _, r := range w.server.Requests() {
		if strings.HasPrefix(r.Path, "/"+bucket) {
			n++
		}
	}
	return n
}
