package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// uidTag is the tag with the UID of the object that a bucket belongs to. The UID is
// different in each run.
const uidTag = "storage.koboshi.dev/uid"

// ledger describes the store in lines: buckets, their configuration and their objects. It
// leaves out everything that differs from run to run, such as dates and UIDs.
func ledger(ctx context.Context, client *s3.Client) ([]string, error) {
	var lines []string
	buckets := s3.NewListBucketsPaginator(client, &s3.ListBucketsInput{})
	for buckets.HasMorePages() {
		page, err := buckets.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the buckets: %w", err)
		}
		for _, b := range page.Buckets {
			more, err := bucketLines(ctx, client, aws.ToString(b.Name))
			if err != nil {
				return nil, err
			}
			lines = append(lines, more...)
		}
	}
	return lines, nil
}

func bucketLines(ctx context.Context, client *s3.Client, bucket string) ([]string, error) {
	lines := []string{"bucket " + bucket}
	versioning, err := client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &bucket})
	if err != nil {
		return nil, fmt.Errorf("reading the versioning of %s: %w", bucket, err)
	}
	if versioning.Status != "" {
		lines = append(lines, fmt.Sprintf("%s versioning %s", bucket, versioning.Status))
	}
	tags, err := client.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: &bucket})
	if err != nil && !nothing(err) {
		return nil, fmt.Errorf("reading the tags of %s: %w", bucket, err)
	}
	if err == nil {
		for _, tag := range tags.TagSet {
			line := fmt.Sprintf("%s tag %s", bucket, aws.ToString(tag.Key))
			if aws.ToString(tag.Key) != uidTag {
				line += "=" + aws.ToString(tag.Value)
			}
			lines = append(lines, line)
		}
	}
	objects := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: &bucket})
	for objects.HasMorePages() {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the objects in %s: %w", bucket, err)
		}
		for _, o := range page.Contents {
			lines = append(lines, fmt.Sprintf("%s object %s", bucket, aws.ToString(o.Key)))
		}
	}
	return lines, nil
}

// nothing reports whether the error means that a bucket does not have the requested
// configuration.
func nothing(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "NoSuchTagSet"
}
