package notify

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
)

// These are the outcomes of requests in the metric storagebucket_notifications_total.
const (
	outcomeAccepted        = "accepted"        // at least one object was poked
	outcomeIgnored         = "ignored"         // no object refers to the bucket
	outcomeUnauthenticated = "unauthenticated" // 401
	outcomeForbidden       = "forbidden"       // 403
	outcomeInvalid         = "invalid"         // any other 4xx, and 501
	outcomeFailed          = "failed"          // an error of the operator: the sender may retry
)

// answer is the response to a request.
type answer struct {
	status int
	// Poked is the number of objects that will be probed. Unknown is the number of
	// buckets that no object refers to.
	Poked   int `json:"poked"`
	Unknown int `json:"unknown"`
}

// refusal is the response to a request that is refused. The text of a refusal is fixed and repeats
// nothing from the request.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

var (
	errNoSuchObject = &refusal{http.StatusNotFound, "there is no such object"}
	errTooLarge     = &refusal{http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB: send fewer records at once"}
	errCutOff       = &refusal{http.StatusBadRequest, "the body could not be read completely"}
	errMediaType    = &refusal{http.StatusUnsupportedMediaType, "send application/json in UTF-8, not compressed"}
	errFailed       = &refusal{http.StatusServiceUnavailable, "the event could not be processed: try again"}
)

// endpoint answers requests.
type endpoint struct {
	gate    *gate
	poke    func(context.Context, types.NamespacedName) error
	buckets func(context.Context, types.NamespacedName, string) ([]types.NamespacedName, error)
	logger  logr.Logger
}

// routes returns the handler of all paths, which answers 404 or 405 if there is no handler
// for the request.
func (e *endpoint) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /v1/stores/{namespace}/{name}/events", e.guarded("objectstores", "notify", e.events))
	mux.Handle("POST /v1/buckets/{namespace}/{name}/poke", e.guarded("storagebuckets", "poke", e.single))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			metrics.Notifications.WithLabelValues(outcomeInvalid).Inc()
		}
		mux.ServeHTTP(w, r)
	})
}

// work handles a request that is allowed. about is the object that the path names.
type work func(ctx context.Context, about types.NamespacedName, r *http.Request) (answer, error)

// guarded returns a handler that calls the function do if the client may create the subresource of
// the object that the path names. The handler also writes the response.
func (e *endpoint) guarded(resource, subresource string, do work) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), workTimeout)
		defer cancel()
		about := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
		result, err := answer{}, error(errNoSuchObject)
		if wellFormed(about) {
			err = e.gate.check(ctx, r.Header, access{resource: resource, subresource: subresource, about: about})
		}
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			result, err = do(ctx, about, r)
		}
		e.respond(w, result, err)
	})
}

// wellFormed reports whether an object can have this namespace and name.
func wellFormed(n types.NamespacedName) bool {
	return len(validation.IsDNS1123Label(n.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(n.Name)) == 0
}

// events pokes all buckets that a notification names, each once.
func (e *endpoint) events(ctx context.Context, store types.NamespacedName, r *http.Request) (answer, error) {
	if err := checkMediaType(r.Header); err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return answer{}, errTooLarge
	}
	if err != nil {
		return answer{}, errCutOff
	}
	names, err := bucketNames(body)
	if err != nil {
		return answer{}, err
	}
	result := answer{status: http.StatusAccepted}
	poked := map[types.NamespacedName]bool{}
	for _, name := range names {
		objects, err := e.buckets(ctx, store, name)
		if err != nil {
			return answer{}, err
		}
		known := false
		for _, object := range objects {
			if !poked[object] {
				switch err := e.poke(ctx, object); {
				case apierrors.IsNotFound(err):
					continue // the object was deleted meanwhile
				case err != nil:
					return answer{}, err
				}
				poked[object] = true
			}
			known = true
		}
		if !known {
			result.Unknown++
		}
	}
	result.Poked = len(poked)
	e.logger.V(1).Info("events from a store", "namespace", store.Namespace, "name", store.Name,
		"poked", result.Poked, "unknown", result.Unknown)
	return result, nil
}

// single pokes one bucket. It ignores the body.
func (e *endpoint) single(ctx context.Context, bucket types.NamespacedName, _ *http.Request) (answer, error) {
	if err := e.poke(ctx, bucket); err != nil {
		return answer{}, err
	}
	e.logger.V(1).Info("poked", "namespace", bucket.Namespace, "name", bucket.Name)
	return answer{status: http.StatusAccepted, Poked: 1}, nil
}

// checkMediaType accepts the media type of JSON, and text/plain, which Amazon SNS sends for
// JSON.
func checkMediaType(h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return errMediaType
	}
	given := h.Get("Content-Type")
	if given == "" {
		return nil
	}
	media, parameters, err := mime.ParseMediaType(given)
	charset := strings.ToLower(parameters["charset"])
	if err != nil || media != "application/json" && media != "text/plain" ||
		charset != "" && charset != "utf-8" && charset != "us-ascii" {
		return errMediaType
	}
	return nil
}

// respond writes the response and counts the request.
func (e *endpoint) respond(w http.ResponseWriter, result answer, err error) {
	var no *refusal
	switch {
	case err == nil:
	case errors.As(err, &no):
	case apierrors.IsNotFound(err):
		no = errNoSuchObject
	default:
		no = errFailed
		if !errors.Is(err, context.Canceled) { // the sender has not disconnected
			e.logger.Error(err, "an event could not be processed")
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if no == nil {
		metrics.Notifications.WithLabelValues(outcomeOf(result.status, result.Poked)).Inc()
		w.WriteHeader(result.status)
		_ = json.NewEncoder(w).Encode(result)
		return
	}
	metrics.Notifications.WithLabelValues(outcomeOf(no.status, 0)).Inc()
	switch no.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="storagebucket"`)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(no.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": no.text})
}

func outcomeOf(status, poked int) string {
	switch {
	case status < 300 && poked > 0:
		return outcomeAccepted
	case status < 300:
		return outcomeIgnored
	case status == http.StatusUnauthorized:
		return outcomeUnauthenticated
	case status == http.StatusForbidden:
		return outcomeForbidden
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests:
		return outcomeFailed
	default:
		return outcomeInvalid
	}
}
