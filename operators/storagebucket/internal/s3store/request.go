package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// maxPage is how many items S3 lists, and deletes, at most with one request.
const maxPage = 1000

// codeNoSuchBucket is the only way a store has of saying so.
const codeNoSuchBucket = "NoSuchBucket"

// ask makes one request and returns its answer. An error whose code is one of
// absent means that there is nothing of the kind: then both are nil.
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

// eachPage calls page until it says that there is no next one. What it returns
// as next only tells pages apart.
func eachPage(page func() (next string, err error)) error {
	for last := ""; ; {
		next, err := page()
		if err != nil || next == "" {
			return err
		}
		if next == last {
			// Nothing would ever end this.
			return &Error{Reason: ReasonUnexpectedResponse, Message: "the store repeats a page of its listing"}
		}
		last = next
	}
}

// list asks for a page of objects. That the store names the bucket shows that
// it answered what it was asked: the SDK reads nothing at all, and any other
// document, as a bucket without objects.
func list(ctx context.Context, c *s3.Client, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	out, err := c.ListObjectsV2(ctx, in)
	if err == nil && out.Name == nil {
		return nil, &Error{Reason: ReasonUnexpectedResponse, Message: "the answer is not a listing of the bucket"}
	}
	return out, err
}

// nextPage tells a truncated listing's next page by its markers; empty when the
// listing is complete.
func nextPage(truncated *bool, markers ...*string) string {
	if !aws.ToBool(truncated) {
		return ""
	}
	return fmt.Sprintf("%q", aws.ToStringSlice(markers))
}

// dateOf is the store's clock at an answer that was an error; zero when it did
// not tell.
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

// withMD5 adds the header Content-MD5 to requests that must carry a checksum.
// The SDK sends a newer one, which AWS takes and many other stores do not.
func withMD5(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, smithyhttp.AddContentChecksumMiddleware)
}
