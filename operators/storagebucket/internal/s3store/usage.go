package s3store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Usage is the number and size of the objects in a bucket.
type Usage struct {
	// Objects is the number of current objects, without old versions and unfinished
	// uploads.
	Objects int64
	// Bytes is the total size of the objects that Objects counts.
	Bytes int64
	// Truncated reports whether there are more objects than the limit.
	Truncated bool
}

// Usage counts a bucket's objects by listing at most the first maxObjects of them. Usage
// takes one request per thousand objects, and S3 has no cheaper way. If the bucket changes
// during the count, the result does not describe any single moment.
func (s *Store) Usage(ctx context.Context, bucket string, maxObjects int64) (Usage, error) {
	var usage Usage
	in := &s3.ListObjectsV2Input{Bucket: &bucket, EncodingType: types.EncodingTypeUrl}
	err := eachPage(func() (next string, err error) {
		left := maxObjects - usage.Objects
		if left <= 0 {
			usage.Truncated = true
			return "", nil
		}
		in.MaxKeys = aws.Int32(int32(min(left, maxPage)))
		out, err := ask(ctx, s, func(ctx context.Context, c *s3.Client) (*s3.ListObjectsV2Output, error) {
			return list(ctx, c, in)
		})
		if err != nil {
			return "", err
		}
		for _, o := range out.Contents {
			usage.Objects++
			usage.Bytes += aws.ToInt64(o.Size)
		}
		in.ContinuationToken = out.NextContinuationToken
		return nextPage(out.IsTruncated, in.ContinuationToken), nil
	})
	return usage, err
}
