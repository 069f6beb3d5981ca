package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const awsRecord = `{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-central-1",
 "eventTime":"2026-11-20T12:00:00.000Z","eventName":"ObjectCreated:Put",
 "userIdentity":{"principalId":"AWS:EXAMPLE"},"requestParameters":{"sourceIPAddress":"192.0.2.1"},
 "responseElements":{"x-amz-request-id":"ID","x-amz-id-2":"ID2"},
 "s3":{"s3SchemaVersion":"1.0","configurationId":"all",
  "bucket":{"name":%q,"ownerIdentity":{"principalId":"EXAMPLE"},"arn":"arn:aws:s3:::x"},
  "object":{"key":"confidential/report+2026.pdf","size":1024,"eTag":"d41d8cd9","sequencer":"0055AED6DCD90281E5"}}}`

func aws(buckets ...string) string {
	records := make([]string, len(buckets))
	for i, name := range buckets {
		records[i] = fmt.Sprintf(awsRecord, name)
	}
	return `{"Records":[` + strings.Join(records, ",") + `]}`
}

func minio(bucket string) string {
	return fmt.Sprintf(`{"EventName":"s3:ObjectCreated:Put","Key":"%s/confidential/report.pdf","Records":[`+
		strings.Replace(awsRecord, "aws:s3", "minio:s3", 1)+`]}`, bucket, bucket)
}

func sns(kind, content string) string {
	quoted, _ := json.Marshal(content)
	return fmt.Sprintf(`{"Type":%q,"MessageId":"22b80b92","TopicArn":"arn:aws:sns:eu-central-1:123456789012:t",
 "Subject":"Amazon S3 Notification","Message":%s,"Timestamp":"2026-11-20T12:00:00.000Z","SignatureVersion":"1",
 "Signature":"EXAMPLE","SigningCertURL":"https://sns.example.com/cert.pem","UnsubscribeURL":"https://sns.example.com/u",
 "SubscribeURL":"http://169.254.169.254/latest/meta-data"}`, kind, quoted)
}

const (
	testEvent = `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-11-20T12:00:00.000Z","Bucket":"photos","RequestId":"ID","HostId":"H"}`

	eventBridge = `{"version":"0","id":"17793124","detail-type":"Object Created","source":"aws.s3","account":"123456789012",
 "time":"2026-11-20T12:00:00Z","region":"eu-central-1","resources":["arn:aws:s3:::photos"],
 "detail":{"version":"0","bucket":{"name":"photos"},"object":{"key":"confidential.pdf","size":5},"reason":"PutObject"}}`
)

func TestBucketNamesOfEveryKindOfEvent(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []string
	}{
		"AWS":                         {aws("photos"), []string{"photos"}},
		"AWS, a burst of two buckets": {aws("photos", "films", "photos", "photos"), []string{"photos", "films"}},
		"AWS, a name as in a URL":     {aws("my%2Dphotos"), []string{"my-photos"}},
		"AWS, an old name":            {aws("My_Photos"), []string{"My_Photos"}},
		"AWS, invalid names":          {aws("photos/x", "", "a b", "%2e%2e%2f", strings.Repeat("x", 256)), nil},
		"AWS, the test event":         {testEvent, []string{"photos"}},
		"Amazon SNS":                  {sns("Notification", aws("photos")), []string{"photos"}},
		"Amazon SNS, the test event":  {sns("Notification", testEvent), []string{"photos"}},
		"Amazon EventBridge":          {eventBridge, []string{"photos"}},
		"MinIO":                       {minio("photos"), []string{"photos"}},
		"MinIO, the key alone":        {`{"EventName":"s3:BucketCreated:*","Key":"photos"}`, []string{"photos"}},
		"MinIO, the key as in a URL":  {`{"EventName":"s3:ObjectRemoved:Delete","Key":"my%2Dphotos/a%2Fb"}`, []string{"my-photos"}},
		"an empty object, as a check": {` {} `, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := bucketNames([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatIsNoEventIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want error
	}{
		"nothing":                        {"", errNotAnEvent},
		"no JSON":                        {"bucket=photos", errNotAnEvent},
		"JSON cut off":                   {aws("photos")[:100], errNotAnEvent},
		"two bodies":                     {aws("photos") + aws("photos"), errNotAnEvent},
		"another object":                 {`{"hello":"world"}`, errNotAnEvent},
		"an array":                       {`[{"Records":[]}]`, errNotAnEvent},
		"no records":                     {`{"Records":[]}`, errNotAnEvent},
		"records that are text":          {`{"Records":"photos"}`, errNotAnEvent},
		"a name that is a number":        {`{"Records":[{"s3":{"bucket":{"name":7}}}]}`, errNotAnEvent},
		"an envelope with nothing":       {sns("Notification", "hello"), errNotAnEvent},
		"an envelope in an envelope":     {sns("Notification", sns("Notification", aws("photos"))), errNotAnEvent},
		"an empty object in an envelope": {sns("Notification", "{}"), errNotAnEvent},
		"a subscription":                 {sns("SubscriptionConfirmation", "confirm"), errSubscription},
		"the end of a subscription":      {sns("UnsubscribeConfirmation", "confirm"), errSubscription},
		"an event of another source":     {strings.Replace(eventBridge, "aws.s3", "aws.ec2", 1), errNotAnEvent},
		"a thousand records and one":     {aws(make([]string, maxRecords+1)...), errTooMany},
		"very deep":                      {strings.Repeat(`{"Records":[`, 100_000), errNotAnEvent},
	} {
		t.Run(name, func(t *testing.T) {
			if names, err := bucketNames([]byte(test.body)); !errors.Is(err, test.want) {
				t.Errorf("got %q and %v, want %v", names, err, test.want)
			}
		})
	}
}

func FuzzBucketNames(f *testing.F) {
	for _, seed := range []string{
		aws("photos", "films"), minio("photos"), testEvent, eventBridge, sns("Notification", aws("photos")),
		sns("SubscriptionConfirmation", "x"), "{}", "", `{"Records":[{"s3":null}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		names, err := bucketNames(body)
		var no *refusal
		if err != nil && (!errors.As(err, &no) || len(names) > 0) {
			t.Fatalf("got %q and %v", names, err)
		}
		seen := map[string]bool{}
		for _, name := range names {
			if seen[name] || !couldBeABucket(name) {
				t.Fatalf("got %q", names)
			}
			seen[name] = true
		}
		if len(names) > maxRecords {
			t.Fatalf("%d names", len(names))
		}
	})
}
