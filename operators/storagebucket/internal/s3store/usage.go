package s3store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Usage is the content of a bucket in figures.
type Usage struct {
	// Objects that a reader sees: no old versions, no unfinished uploads.
	Objects int64
	// Bytes of these objects.
	Bytes int64
	// Truncated is set if there are more objects than the limit allows to count.
	Truncated bool
}

// Usage counts a bucket's objects by listing them, the first maxObjects at
// most, since S3 knows no cheaper way: a request for each thousand. The figures
// are those of a moment only for a bucket that nobody writes to meanwhile.
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
