package trace

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Review is a call of a webhook by the API server: an admission or a conversion. A Review is
// recorded when the webhook has answered or has failed.
type Review struct {
	// Path is the path of the webhook.
	Path string `json:"path"`
	// Request and Response are an AdmissionReview or a ConversionReview, decoded and
	// redacted; the patch of an admission is decoded, too. In the process that records the
	// trace, RawRequest and RawResponse hold the bodies instead; RequestObject and
	// ResponseObject read whichever is set.
	Request     json.RawMessage `json:"request,omitempty"`
	RawRequest  Body            `json:"-"`
	Response    json.RawMessage `json:"response,omitempty"`
	RawResponse Body            `json:"-"`
	// Code is the HTTP status of the answer, or 0 if there was none. Error explains why
	// there was no answer.
	Code  int    `json:"code"`
	Error string `json:"error,omitempty"`
	// Took is the time until the answer was sent, in nanoseconds. Held is the part of Took in which
	// no process was ready to answer.
	Took time.Duration `json:"took"`
	Held time.Duration `json:"held,omitempty"`
	// Replays is the number of the entry whose review a person sent again. Replays is 0 for a call
	// by the API server.
	Replays int64 `json:"replays,omitempty"`
}

// RequestObject decodes the review and redacts its secrets. RequestObject returns nil if there is
// no body.
func (r *Review) RequestObject() (map[string]any, error) {
	v, err := r.request()
	if err != nil {
		return nil, fmt.Errorf("decoding the review that was sent to %s: %w", r.Path, err)
	}
	return v, nil
}

// ResponseObject does the same as RequestObject, for the answer of the webhook.
func (r *Review) ResponseObject() (map[string]any, error) {
	v, err := r.response()
	if err != nil {
		return nil, fmt.Errorf("decoding the answer of %s: %w", r.Path, err)
	}
	return v, nil
}

// MarshalJSON decodes and redacts the bodies that have not been decoded yet.
func (r Review) MarshalJSON() ([]byte, error) {
	type fields Review
	f := fields(r)
	if request, err := r.request(); err == nil {
		f.Request = encodedReview(request)
	}
	if response, err := r.response(); err == nil {
		f.Response = encodedReview(response)
	}
	return json.Marshal(f)
}

func encodedReview(review map[string]any) json.RawMessage {
	if review == nil {
		return nil
	}
	data, err := json.Marshal(review)
	if err != nil {
		return nil
	}
	return data
}

func (r *Review) request() (map[string]any, error) {
	review, err := decodedReview(r.RawRequest, r.Request)
	if len(r.Request) == 0 {
		redact(review, aboutSecrets(review))
	}
	return review, err
}

func (r *Review) response() (map[string]any, error) {
	review, err := decodedReview(r.RawResponse, r.Response)
	if err != nil || review == nil || len(r.Response) > 0 {
		return review, err
	}
	request, err := decodedReview(r.RawRequest, r.Request)
	redactAnswer(review, err != nil || aboutSecrets(request))
	return review, nil
}

func decodedReview(raw Body, done json.RawMessage) (map[string]any, error) {
	var v any
	var err error
	if len(done) > 0 {
		err = utiljson.Unmarshal(done, &v)
	} else {
		v, err = raw.value()
	}
	if err != nil || v == nil {
		return nil, err
	}
	review, isObject := v.(map[string]any)
	if !isObject {
		return nil, fmt.Errorf("the review is a %T, not an object", v)
	}
	return review, nil
}

// aboutSecrets reports whether the object of an admission is a Secret. The kind of the object alone
// does not show this, because a patch or the options of a deletion have another kind or none.
func aboutSecrets(review map[string]any) bool {
	request, _ := review["request"].(map[string]any)
	for _, field := range []string{"resource", "requestResource"} {
		resource, _ := request[field].(map[string]any)
		if group, _ := resource["group"].(string); group == "" && resource["resource"] == "secrets" {
			return true
		}
	}
	return false
}

// redactAnswer decodes the patch in the answer of a webhook, and redacts the answer. A webhook
// may quote the object in each of its messages.
func redactAnswer(review map[string]any, secret bool) {
	response, _ := review["response"].(map[string]any)
	if text, isText := response["patch"].(string); isText {
		response["patch"] = decodedPatch(text)
	}
	if secret {
		if patch, isPatch := response["patch"].([]any); isPatch {
			redactPatch(patch)
		}
		for _, field := range []string{"status", "result", "warnings", "auditAnnotations"} {
			replaceText(response, field)
		}
	}
	redact(review, secret)
}

// decodedPatch decodes a JSON patch, which is base64 in a review. A patch that cannot be
// decoded is replaced by its digest, because it cannot be searched for secrets.
func decodedPatch(text string) any {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return digest([]byte(text))
	}
	var patch any
	if err := utiljson.Unmarshal(data, &patch); err != nil {
		return digest(data)
	}
	return patch
}

// replaceText puts digests in place of all texts in m[key] that the webhook has written. The code
// and the reason of a status are kept.
func replaceText(m map[string]any, key string) {
	status, isMap := m[key].(map[string]any)
	if !isMap || key == "auditAnnotations" {
		replace(m, key, false)
		return
	}
	for field := range status {
		switch field {
		case "code", "status", "reason":
		default:
			replace(status, field, false)
		}
	}
}
