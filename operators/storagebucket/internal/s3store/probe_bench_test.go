package s3store

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

// BenchmarkProbe measures a probe of a healthy bucket, including the server's side.
func BenchmarkProbe(b *testing.B) {
	store := storeAt(b, faultserver.Start(b, faultserver.WithoutRecord()))
	b.ReportAllocs()
	for b.Loop() {
		if r := store.Probe(b.Context(), "photos"); !r.Succeeded() {
			b.Fatal(r)
		}
	}
}

// BenchmarkHeadOfSDK measures the cost of a probe sent by the SDK. It justifies the
// prober.
func BenchmarkHeadOfSDK(b *testing.B) {
	store := storeAt(b, faultserver.Start(b, faultserver.WithoutRecord()))
	b.ReportAllocs()
	for b.Loop() {
		_, failure := store.send(b.Context(), exchange{}, func(ctx context.Context, c *s3.Client) error {
			_, err := c.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String("photos")})
			return err
		})
		if failure != nil {
			b.Fatal(failure)
		}
	}
}
