// Command s3client acts as another client of a store, for demos. It can change a bucket
// behind the operator's back, so that the operator has to restore the declared state.
//
//	s3client --endpoint URL versioning BUCKET              prints the state of versioning
//	s3client --endpoint URL suspend-versioning BUCKET      suspends versioning
//	s3client --endpoint URL exists BUCKET                  prints true or false
//	s3client --endpoint URL make BUCKET                    creates the bucket
//	s3client --endpoint URL put BUCKET                     puts an object into the bucket
//	s3client --endpoint URL ledger                         prints the whole store, in lines
//
// The key pair comes from the same environment variables as in s3server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

const timeout = 10 * time.Second

func main() {
	endpoint := flag.String("endpoint", "", "URL of the store")
	flag.Parse()
	ledgerOnly := flag.NArg() == 1 && flag.Arg(0) == "ledger"
	if *endpoint == "" || flag.NArg() != 2 && !ledgerOnly {
		fmt.Fprintln(os.Stderr, "usage: s3client --endpoint URL versioning|suspend-versioning|exists|make|put BUCKET\n       s3client --endpoint URL ledger")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	out, err := run(ctx, newClient(*endpoint), flag.Arg(0), flag.Arg(1))
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3client:", err)
		os.Exit(1) //nolint:gocritic // the request is over; there is nothing left to cancel
	}
	_, _ = fmt.Fprintln(os.Stdout, out)
}

func newClient(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &endpoint, Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("ROOT_ACCESS_KEY"), os.Getenv("ROOT_SECRET_KEY"), ""),
	})
}

func run(ctx context.Context, client *s3.Client, verb, bucket string) (string, error) {
	switch verb {
	case "versioning":
		out, err := client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &bucket})
		if err != nil {
			return "", fmt.Errorf("reading the versioning of %s: %w", bucket, err)
		}
		return string(out.Status), nil
	case "suspend-versioning":
		_, err := client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
			Bucket:                  &bucket,
			VersioningConfiguration: &s3types.VersioningConfiguration{Status: s3types.BucketVersioningStatusSuspended},
		})
		if err != nil {
			return "", fmt.Errorf("suspending the versioning of %s: %w", bucket, err)
		}
		return "Suspended", nil
	case "exists":
		_, err := client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket, MaxKeys: aws.Int32(1)})
		var api smithy.APIError
		if errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket" {
			return "false", nil
		}
		if err != nil {
			return "", fmt.Errorf("checking whether %s exists: %w", bucket, err)
		}
		return "true", nil
	case "make":
		if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
			return "", fmt.Errorf("creating %s: %w", bucket, err)
		}
		return "made", nil
	case "put":
		_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("film"), Body: strings.NewReader("film")})
		if err != nil {
			return "", fmt.Errorf("putting an object into %s: %w", bucket, err)
		}
		return "put", nil
	case "ledger":
		lines, err := ledger(ctx, client)
		return strings.Join(lines, "\n"), err
	default:
		return "", fmt.Errorf("unknown verb %q", verb)
	}
}
