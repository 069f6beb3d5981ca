package s3store

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

// TestNoOutcomeShowsASecret plants the keys in every place where a store can
// put text, and checks every way in which an outcome can be printed.
func TestNoOutcomeShowsASecret(t *testing.T) {
	document := "<Error><Code>" + testKeyID + "</Code><Message>" + testSecret + "</Message><AWSAccessKeyId>" + testKeyID +
		"</AWSAccessKeyId><StringToSign>AWS4-HMAC-SHA256</StringToSign><Region>" + testToken + "</Region><RequestId>REQUEST-ID</RequestId></Error>"
	headers := []string{
		"Content-Type", testSecret, "Server", testSecret, "X-Amz-Request-Id", "REQUEST-ID", "X-Amz-Id-2", testToken,
		"X-Amz-Bucket-Region", testKeyID, "Retry-After", testSecret, "Www-Authenticate", testSecret,
		"Location", "http://" + testKeyID + ":" + testSecret + "@127.0.0.1:1/photos",
	}
	faults := map[string]faultserver.Fault{
		"reset": faultserver.Reset(), "truncated": faultserver.TruncatedBody(403), "hang": faultserver.Hang(),
		"hang in body": faultserver.HangInBody(403), "garbage": faultserver.Body(200, document+testSecret, headers...),
	}
	for _, status := range []int{200, 301, 307, 400, 401, 403, 404, 405, 408, 409, 412, 418, 429, 500, 501, 502, 503, 504} {
		faults[fmt.Sprint(status)] = faultserver.Body(status, document, headers...)
		faults[fmt.Sprint(status, " without body")] = faultserver.Status(status, headers...)
	}
	for code := range reasonOfCode {
		faults[code] = faultserver.S3Error(400, code, headers...)
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			server := faultserver.Start(t)
			server.Script(faultserver.Rule{Fault: fault})
			store := storeAt(t, server)
			for what, got := range outcomes(t, store, time.Second/2) {
				encoded, err := json.Marshal(got)
				if err != nil {
					t.Fatal(err)
				}
				assertNoSecret(t, what+string(encoded)+fmt.Sprintf("%v %+v %#v", got, got, got))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			if err := store.call(ctx, createBucket); err != nil {
				encoded, _ := json.Marshal(err)
				assertNoSecret(t, string(encoded)+fmt.Sprintf("%v %+v %#v %s %q", err, err, err, err, err))
			}
		})
	}
}
