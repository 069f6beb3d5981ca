package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

func TestAnswerIsClassified(t *testing.T) {
	const eu = "eu-west-3"
	denied := "the store denied access to the bucket"
	for _, tc := range []struct {
		name      string
		head, get faultserver.Fault
		want      Reason
		message   string
		calls     int
		retry     time.Duration
	}{
		{"200 is success and needs one request",
			faultserver.Status(200), nil, ReasonSucceeded, "the store answered the request for the bucket", 1, 0},
		{"403 explained by the body as a wrong secret",
			faultserver.Status(403), faultserver.S3Error(403, "SignatureDoesNotMatch"), ReasonInvalidCredentials,
			"the store does not accept the credentials (SignatureDoesNotMatch)", 2, 0},
		{"403 explained by the body as an unknown key",
			faultserver.Status(403), faultserver.S3Error(403, "InvalidAccessKeyId"), ReasonInvalidCredentials, "", 2, 0},
		{"403 explained by the body as a token that has expired",
			faultserver.Status(403), faultserver.S3Error(400, "ExpiredToken"), ReasonInvalidCredentials, "", 2, 0},
		{"403 explained by the body as a missing permission",
			faultserver.Status(403), faultserver.S3Error(403, "AccessDenied"), ReasonAccessDenied, denied + " (AccessDenied)", 2, 0},
		{"403 without a body counts as access denied",
			faultserver.Status(403), faultserver.Status(403), ReasonAccessDenied, denied + " (HTTP status 403)", 2, 0},
		{"403 with an unknown code does not repeat the code",
			faultserver.Status(403), faultserver.S3Error(403, testKeyID), ReasonAccessDenied, denied + " (HTTP status 403)", 2, 0},
		{"404 with its code is a missing bucket",
			faultserver.Status(404), faultserver.S3Error(404, "NoSuchBucket"), ReasonBucketNotFound, "the store has no such bucket (NoSuchBucket)", 2, 0},
		{"404 without a body proves nothing about the bucket",
			faultserver.Status(404), faultserver.Status(404), ReasonUnexpectedResponse, "", 2, 0},
		{"404 from a web server proves nothing about the bucket",
			faultserver.Status(404), faultserver.Garbage(404), ReasonUnexpectedResponse, "", 2, 0},
		{"404 for an unknown key means invalid credentials",
			faultserver.Status(404), faultserver.S3Error(404, "InvalidAccessKeyId"), ReasonInvalidCredentials, "", 2, 0},
		{"301 with the region's name leads to the region of the bucket",
			faultserver.Status(301, "X-Amz-Bucket-Region", eu), faultserver.S3Error(301, "PermanentRedirect", "X-Amz-Bucket-Region", eu),
			ReasonWrongRegion, "the bucket is in region eu-west-3 (PermanentRedirect)", 2, 0},
		{"301 with the region's name and no body",
			faultserver.Status(301, "X-Amz-Bucket-Region", eu), faultserver.Status(301, "X-Amz-Bucket-Region", eu),
			ReasonWrongRegion, "the bucket is in region eu-west-3 (HTTP status 301)", 2, 0},
		{"301 with its code and no region",
			faultserver.Status(301), faultserver.S3Error(301, "PermanentRedirect"),
			ReasonWrongRegion, "the region or the endpoint does not match the bucket (PermanentRedirect)", 2, 0},
		{"301 with an invalid region does not repeat the region",
			faultserver.Status(301, "X-Amz-Bucket-Region", testKeyID), faultserver.S3Error(301, "PermanentRedirect", "X-Amz-Bucket-Region", testKeyID),
			ReasonWrongRegion, "the region or the endpoint does not match the bucket (PermanentRedirect)", 2, 0},
		{"301 of a web server is not followed",
			faultserver.Status(301, "Location", "http://127.0.0.1:1/elsewhere"), faultserver.Status(301, "Location", "http://127.0.0.1:1/elsewhere"),
			ReasonUnexpectedResponse, "the endpoint redirects to another one, but the operator does not follow redirects: use an endpoint that does not redirect (HTTP status 301)", 2, 0},
		{"400 for a signature of another region",
			faultserver.Status(400), faultserver.S3Error(400, "AuthorizationHeaderMalformed"), ReasonWrongRegion, "", 2, 0},
		{"400 without a body that names another region",
			faultserver.Status(400), faultserver.Status(400, "X-Amz-Bucket-Region", eu), ReasonWrongRegion, "", 2, 0},
		{"400 without a body",
			faultserver.Status(400), faultserver.Status(400), ReasonUnexpectedResponse, "", 2, 0},
		{"403 for a clock that is off",
			faultserver.Status(403), faultserver.S3Error(403, "RequestTimeTooSkewed", "Date", "Fri, 20 Nov 2020 12:00:00 GMT"), ReasonClockSkew, "", 2, 0},
		{"503 asks for fewer requests, and no second request is sent",
			faultserver.Status(503, "Retry-After", "120"), nil, ReasonThrottled,
			"the store asked for fewer requests (HTTP status 503)", 1, 2 * time.Minute},
		{"503 without a time",
			faultserver.Throttle(""), nil, ReasonThrottled, "", 1, 0},
		{"503 with a date until which to wait",
			faultserver.Throttle(time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), nil, ReasonThrottled, "", 1, MaxRetryAfter},
		{"503 with an invalid time",
			faultserver.Throttle("soon"), nil, ReasonThrottled, "", 1, 0},
		{"429 with an endless Retry-After is cut",
			faultserver.Status(429, "Retry-After", "99999999999999999999"), nil, ReasonThrottled, "", 1, MaxRetryAfter},
		{"429 with a long Retry-After is cut",
			faultserver.Status(429, "Retry-After", "86400"), nil, ReasonThrottled, "", 1, MaxRetryAfter},
		{"SlowDown found only in the body",
			faultserver.Status(400), faultserver.S3Error(400, "SlowDown", "Retry-After", "3"), ReasonThrottled, "", 2, 3 * time.Second},
		{"500 is the store's failure",
			faultserver.Status(500), faultserver.S3Error(500, "InternalError"), ReasonServerError, "the store failed (InternalError)", 2, 0},
		{"502 of a proxy is the store's failure",
			faultserver.Status(502), faultserver.Garbage(502), ReasonServerError, "the store failed (HTTP status 502)", 2, 0},
		{"501 is unsupported",
			faultserver.Status(501), faultserver.S3Error(501, "NotImplemented"), ReasonUnsupported, "", 2, 0},
		{"307 with its code",
			faultserver.Status(307), faultserver.S3Error(307, "TemporaryRedirect"), ReasonWrongRegion, "", 2, 0},
		{"308 without a body comes from some web server",
			faultserver.Status(308), faultserver.Status(308), ReasonUnexpectedResponse, "", 2, 0},
		{"501 without a body is unsupported",
			faultserver.Status(501), faultserver.Status(501), ReasonUnsupported, "", 2, 0},
		{"a store without HEAD that lists the bucket is healthy",
			faultserver.Status(405), faultserver.Body(200, "<ListBucketResult><Name>photos</Name></ListBucketResult>"), ReasonSucceeded, "", 2, 0},
		{"200 with a body that is not S3's, after a failed HEAD, is no success",
			faultserver.Status(404), faultserver.Garbage(200), ReasonUnexpectedResponse, "", 2, 0},
		{"an endless error is not read to its end",
			faultserver.Status(403), faultserver.HugeBody(403, 1<<30), ReasonAccessDenied, "", 2, 0},
		{"an endless list is not read to its end",
			faultserver.Status(403), faultserver.HugeBody(200, 1<<30), ReasonUnexpectedResponse, "", 2, 0},
		{"a redirect only in response to HEAD",
			faultserver.Status(307, "Location", "/elsewhere"), faultserver.Garbage(401), ReasonInvalidCredentials, "", 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := faultserver.Start(t)
			server.Script(faultserver.Rule{Method: "HEAD", Fault: tc.head}, faultserver.Rule{Method: "GET", Fault: tc.get})
			got := storeAt(t, server).Probe(t.Context(), "photos")
			if got.Reason != tc.want {
				t.Errorf("reason %s (%s), want %s", got.Reason, got.Message, tc.want)
			}
			if tc.message != "" && got.Message != tc.message {
				t.Errorf("message %q, want %q", got.Message, tc.message)
			}
			if got.RetryAfter != tc.retry {
				t.Errorf("retry after %v, want %v", got.RetryAfter, tc.retry)
			}
			if got.Latency <= 0 {
				t.Errorf("latency %v of a store that answered", got.Latency)
			}
			if calls := server.Lines(); len(calls) != tc.calls {
				t.Errorf("requests %q, want %d of them", calls, tc.calls)
			}
			assertNoSecret(t, fmt.Sprintf("%+v", got))
		})
	}
}

func assertNoSecret(t *testing.T, s string) {
	t.Helper()
	for _, secret := range []string{testSecret, testKeyID, testToken, "REQUEST-ID", "AWS4-HMAC", "photos", "127.0.0.1"} {
		if strings.Contains(s, secret) {
			t.Errorf("%q in %q", secret, s)
		}
	}
}

// createBucket sends a request to create a bucket, because a store answers it with
// errors that a probe never gets.
func createBucket(ctx context.Context, c *s3.Client) error {
	bucket := "photos"
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &bucket})
	return err
}

func TestErrorOfACallIsClassified(t *testing.T) {
	for _, tc := range []struct {
		fault    faultserver.Fault
		want     Reason
		code     string
		terminal bool
	}{
		{faultserver.S3Error(409, "BucketAlreadyExists"), ReasonOwnershipConflict, "BucketAlreadyExists", true},
		{faultserver.S3Error(409, "BucketAlreadyOwnedByYou"), ReasonBucketExists, "BucketAlreadyOwnedByYou", false},
		{faultserver.S3Error(409, "BucketNotEmpty"), ReasonNotEmpty, "BucketNotEmpty", true},
		{faultserver.S3Error(409, "OperationAborted"), ReasonServerError, "OperationAborted", false},
		{faultserver.S3Error(400, "MalformedXML"), ReasonInvalidConfiguration, "MalformedXML", true},
		{faultserver.S3Error(400, "InvalidBucketName"), ReasonInvalidConfiguration, "InvalidBucketName", true},
		{faultserver.S3Error(400, "IllegalLocationConstraintException"), ReasonWrongRegion, "IllegalLocationConstraintException", true},
		{faultserver.S3Error(501, "NotImplemented"), ReasonUnsupported, "NotImplemented", true},
		{faultserver.S3Error(501, "XNotImplemented"), ReasonUnsupported, "XNotImplemented", true},
		{faultserver.S3Error(405, "MethodNotAllowed"), ReasonUnsupported, "MethodNotAllowed", true},
		{faultserver.S3Error(404, "NoSuchTagSet"), ReasonUnexpectedResponse, "NoSuchTagSet", false},
		{faultserver.S3Error(403, "AccessDenied"), ReasonAccessDenied, "AccessDenied", true},
		{faultserver.S3Error(403, "InvalidAccessKeyId"), ReasonInvalidCredentials, "InvalidAccessKeyId", true},
		{faultserver.S3Error(404, "NoSuchBucket"), ReasonBucketNotFound, "NoSuchBucket", true},
		{faultserver.S3Error(500, "InternalError"), ReasonServerError, "InternalError", false},
		{faultserver.S3Error(403, "RequestTimeTooSkewed"), ReasonClockSkew, "RequestTimeTooSkewed", false},
		{faultserver.HugeBody(409, 1<<30), ReasonUnexpectedResponse, "", false},
		{faultserver.Body(200, "<Error><Code>InternalError</Code></Error>"), ReasonServerError, "InternalError", false},
		{faultserver.Garbage(409), ReasonUnexpectedResponse, "", false},
		{faultserver.TruncatedBody(409), ReasonEndpointUnreachable, "", false},
		{faultserver.Reset(), ReasonEndpointUnreachable, "", false},
	} {
		t.Run(string(tc.want)+" "+tc.code, func(t *testing.T) {
			server := faultserver.Start(t)
			server.Script(faultserver.Rule{Fault: tc.fault})
			err := storeAt(t, server).call(t.Context(), createBucket)
			var e *Error
			if !errors.As(err, &e) || ReasonOf(fmt.Errorf("creating: %w", err)) != tc.want {
				t.Fatalf("%v, reason %s, want %s", err, ReasonOf(err), tc.want)
			}
			if got := codeOf(err); tc.code != "" && got != tc.code {
				t.Errorf("code %q", got)
			}
			if tc.want.Terminal() != tc.terminal {
				t.Errorf("terminal: %v", tc.want.Terminal())
			}
			if errors.Unwrap(err) != nil {
				t.Error("the error wraps its cause")
			}
			if n := server.Count(); n != 1 {
				t.Errorf("%d requests: the attempt is repeated", n)
			}
			assertNoSecret(t, err.Error())
		})
	}
}

func TestOtherErrorsHaveNoReason(t *testing.T) {
	if r := ReasonOf(errors.New("x")); r != "" {
		t.Errorf("%s", r)
	}
	if r := ReasonOf(nil); r != "" {
		t.Errorf("%s", r)
	}
}

func TestConnectionReasonsAreNotTerminal(t *testing.T) {
	connection := []Reason{ReasonEndpointUnreachable, ReasonTLSError, ReasonTimeout}
	all := append(slices.Clone(connection), ReasonThrottled, ReasonServerError, ReasonClockSkew, ReasonUnexpectedResponse,
		ReasonCanceled, ReasonBucketExists, ReasonSucceeded, "")
	for _, r := range all {
		if r.Terminal() {
			t.Errorf("%s is terminal", r)
		}
		if r.Connection() != slices.Contains(connection, r) {
			t.Errorf("%s: Connection is %v", r, r.Connection())
		}
	}
	for _, r := range []Reason{
		ReasonInvalidCredentials, ReasonAccessDenied, ReasonBucketNotFound, ReasonOwnershipConflict, ReasonNotEmpty,
		ReasonWrongRegion, ReasonUnsupported, ReasonInvalidConfiguration, ReasonEndpointForbidden,
		ReasonInvalidEndpoint, ReasonInvalidCABundle, ReasonCredentialsNotFound,
	} {
		if !r.Terminal() || r.Connection() {
			t.Errorf("%s: terminal %v, connection %v", r, r.Terminal(), r.Connection())
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{"", "0", "5", "-5", "1e3", "99999999999999999999", "Fri, 20 Nov 2026 12:00:30 GMT", "Fri, 20 Nov 2020 12:00:30 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d := retryAfter(s, now); d < 0 || d > MaxRetryAfter {
			t.Fatalf("%q gives %v", s, d)
		}
	})
}

func TestRetryAfterTakesSecondsAndDates(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-7":                            0,
		"7.5":                           0,
		"601":                           MaxRetryAfter,
		"18446744073709551616":          MaxRetryAfter,
		"Fri, 20 Nov 2026 12:00:30 GMT": 30 * time.Second,
		"Fri, 20 Nov 2026 11:00:30 GMT": 0,
		"Fri, 20 Nov 2027 12:00:30 GMT": MaxRetryAfter,
		"Fri, 31 Dec 9999 23:59:59 GMT": MaxRetryAfter,
		"soon":                          0,
	} {
		if got := retryAfter(in, now); got != want {
			t.Errorf("%q: got %v, want %v", in, got, want)
		}
	}
}

func TestEveryReasonOfACodeHasASentence(t *testing.T) {
	for code, reason := range reasonOfCode {
		if sentence[reason] == "" {
			t.Errorf("%s: reason %s has no sentence", code, reason)
		}
	}
}
