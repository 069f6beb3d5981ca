package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// maxPage is the maximum number of items that S3 lists, or deletes, in one request.
const maxPage = 1000

// codeNoSuchBucket is the only proof that a bucket does not exist.
const codeNoSuchBucket = "NoSuchBucket"

// ask makes one request and returns its response. If the error has one of the codes in
// absent, the requested item does not exist, and both results are nil.
func ask[Answer any](
	ctx context.Context, s *Store,
	request func(context.Context, *s3.Client) (*Answer, error), absent ...string,
) (*Answer, error) {
	var answer *Answer
	err := s.call(ctx, func(ctx context.Context, c *s3.Client) (err error) {
		answer, err = request(ctx, c)
		return err
	})
	if err != nil {
		answer = nil
	}
	if code := codeOf(err); code != "" && slices.Contains(absent, code) {
		err = nil
	}
	return answer, err
}

// eachPage calls page until next is "", which means that there is no other page. Any other
// value of next only has to differ from page to page.
func eachPage(page func() (next string, err error)) error {
	for last := ""; ; {
		next, err := page()
		if err != nil || next == "" {
			return err
		}
		if next == last {
			// Without this check, the loop might never end.
			return &Error{Reason: ReasonUnexpectedResponse, Message: "the store returned the same page of its listing again"}
		}
		last = next
	}
}

// list requests a page of objects. list requires the name of the bucket in the response, because
// the SDK treats an empty response, or any other document, as a listing without objects.
func list(ctx context.Context, c *s3.Client, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	out, err := c.ListObjectsV2(ctx, in)
	if err == nil && out.Name == nil {
		return nil, &Error{Reason: ReasonUnexpectedResponse, Message: "the response is not a listing of the bucket"}
	}
	return out, err
}

// nextPage returns a value, built from the markers, that identifies the next page of a
// truncated listing. It returns "" if the listing is complete.
func nextPage(truncated *bool, markers ...*string) string {
	if !aws.ToBool(truncated) {
		return ""
	}
	return fmt.Sprintf("%q", aws.ToStringSlice(markers))
}

// dateOf returns the store's time from an error response, or zero if the
// response has none.
func dateOf(err error) time.Time {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) || response.Response == nil {
		return time.Time{}
	}
	date, err := http.ParseTime(response.Response.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}

// ownerHeader makes AWS deny a request for a bucket of another account.
const ownerHeader = "X-Amz-Expected-Bucket-Owner"

// expectOwner adds the expected account to all requests for an existing bucket.
func expectOwner(account string) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Build.Add(middleware.BuildMiddlewareFunc("ExpectedBucketOwner", func(
			ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
		) (middleware.BuildOutput, middleware.Metadata, error) {
			switch request, ok := in.Request.(*smithyhttp.Request); {
			case !ok, awsmiddleware.GetOperationName(ctx) == "ListBuckets", awsmiddleware.GetOperationName(ctx) == "CreateBucket":
			default:
				request.Header.Set(ownerHeader, account)
			}
			return next.HandleBuild(ctx, in)
		}), middleware.After)
	}
}

// withMD5 adds the header Content-MD5 to requests that must carry a checksum. The SDK
// sends a newer kind of checksum, which AWS accepts, but many other stores do not.
func withMD5(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, smithyhttp.AddContentChecksumMiddleware)
}
