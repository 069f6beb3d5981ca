package notify

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// maxRecords limits the work that one request can cause.
const maxRecords = 1000

var (
	errNotAnEvent = &refusal{http.StatusBadRequest, "the body is not an event of an object store: send S3 event records, " +
		"alone or wrapped by Amazon SNS, Amazon EventBridge or MinIO"}
	errTooMany = &refusal{http.StatusRequestEntityTooLarge, "more than 1000 records: send fewer in one request"}
	// To confirm a subscription, the operator would have to send a request to a URL in the
	// message, so anyone who may send events could make the operator call any address.
	errSubscription = &refusal{http.StatusNotImplemented, "this endpoint does not confirm subscriptions, because it would have to follow " +
		"a URL from the message: forward the events with Amazon EventBridge (an API destination) or a Lambda function"}
)

// message has the fields that are read from a body, for all kinds of senders.
type message struct {
	// Records are the notifications of AWS, MinIO and Ceph.
	Records []struct {
		S3 struct {
			Bucket struct {
				Name string `json:"name"`
			} `json:"bucket"`
		} `json:"s3"`
	} `json:"Records"`

	// MinIO sends EventName and Key in addition to the records. Key has the form
	// bucket/key.
	EventName string `json:"EventName"`
	Key       string `json:"Key"`

	// AWS sends Event and Bucket when a notification is set up.
	Event  string `json:"Event"`
	Bucket string `json:"Bucket"`

	// Type and Message are the envelope of Amazon SNS.
	Type    string `json:"Type"`
	Message string `json:"Message"`

	// Source and Detail are the envelope of Amazon EventBridge.
	Source string `json:"source"`
	Detail *struct {
		Bucket struct {
			Name string `json:"name"`
		} `json:"bucket"`
	} `json:"detail"`
}

// bucketNames returns the buckets that the body names, each once. The body may be an
// empty JSON object, which some stores send to check whether the endpoint exists.
func bucketNames(body []byte) ([]string, error) {
	m, err := parse(body)
	if err != nil {
		return nil, err
	}
	switch m.Type {
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		return nil, errSubscription
	case "Notification":
		if m, err = parse([]byte(m.Message)); err != nil {
			return nil, err
		}
	}
	switch {
	case len(m.Records) > maxRecords:
		return nil, errTooMany
	case len(m.Records) > 0:
		names := distinct{}
		for i := range m.Records {
			names.add(m.Records[i].S3.Bucket.Name)
		}
		return names.list, nil
	case m.EventName != "" && m.Key != "":
		bucket, _, _ := strings.Cut(m.Key, "/")
		return only(bucket), nil
	case m.Event == "s3:TestEvent":
		return only(m.Bucket), nil
	case m.Source == "aws.s3" && m.Detail != nil:
		return only(m.Detail.Bucket.Name), nil
	case strings.TrimSpace(string(body)) == "{}":
		return nil, nil
	default:
		return nil, errNotAnEvent
	}
}

func parse(body []byte) (message, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return message{}, errNotAnEvent // the decoder's error may repeat the body
	}
	return m, nil
}

func only(name string) []string {
	names := distinct{}
	names.add(name)
	return names.list
}

// distinct collects names of buckets, each once, in the order in which they came.
type distinct struct {
	seen map[string]bool
	list []string
}

// add adds a name from an event, and decodes the name if it is URL-encoded. add drops a text that
// cannot be the name of a bucket.
func (d *distinct) add(name string) {
	if decoded, err := url.QueryUnescape(name); err == nil {
		name = decoded
	}
	if d.seen[name] || !couldBeABucket(name) {
		return
	}
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[name] = true
	d.list = append(d.list, name)
}

const bucketCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// couldBeABucket accepts more names than the current rules allow, because stores have
// older buckets that do not follow these rules.
func couldBeABucket(name string) bool {
	if len(name) < 1 || len(name) > 255 {
		return false
	}
	return strings.Trim(name, bucketCharacters) == ""
}
