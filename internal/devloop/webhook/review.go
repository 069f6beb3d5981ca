package webhook

import (
	"net/http"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A Review is one call of a webhook by the API server, with the answer.
type Review struct {
	// Began is the time at which the request arrived.
	Began time.Time
	// Took is the time until the answer was sent, and Held the part of it in which no manager
	// was running.
	Took, Held time.Duration
	// Path is the path of the webhook.
	Path string
	// Request and Response are an AdmissionReview or a ConversionReview. The bodies are
	// redacted when they leave the process.
	Request, Response trace.Body
	// Status is the HTTP status of the answer, or 0 if there was none.
	Status int
	// Err explains why there was no answer.
	Err string
}

// answer is the manager's response.
type answer struct {
	status      int
	contentType string
	body        []byte
}

func newReview(r *http.Request, body []byte, began time.Time, held time.Duration, answered answer, err error) Review {
	review := Review{
		Began: began, Held: held, Path: r.URL.Path, Status: answered.status,
		Request:  trace.NewBody(body, r.Header.Get("Content-Type"), ""),
		Response: trace.NewBody(answered.body, answered.contentType, ""),
	}
	if err != nil {
		review.Err = err.Error()
	}
	return review
}
