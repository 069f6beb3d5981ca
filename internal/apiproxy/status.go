package apiproxy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	typeJSON     = "application/json"
	typeProtobuf = "application/vnd.kubernetes.protobuf"
)

func status(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}
}

func tooLarge() *metav1.Status {
	return status(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728")
}

func expired() *metav1.Status {
	return status(http.StatusGone, metav1.StatusReasonExpired, "The resourceVersion for the provided watch is too old.")
}

// answer sends the action's answer, without a request to the server.
func (x *exchange) answer() {
	x.call.Injected = true
	x.sendStatus(x.action.Answer, x.action.RetryAfter)
}

// sendStatus answers with s in the encoding that an API server would use for
// this client, and records the answer.
func (x *exchange) sendStatus(s *metav1.Status, retryAfter int) {
	code := int(s.Code)
	if code < 100 {
		code = http.StatusInternalServerError
	}
	var contentType string
	var body []byte
	if x.endpoint != "" {
		contentType, body = endpointError(x.r, s)
	} else {
		contentType, body = encodeStatus(s, strings.HasPrefix(x.r.Header.Get("Accept"), typeProtobuf))
		x.call.RawResponse = trace.NewBody(body, contentType, "")
	}
	x.call.Code = code
	x.call.Reason, x.call.Message = string(s.Reason), s.Message
	x.call.ResponseSize = int64(len(body))
	if retryAfter > 0 {
		x.w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if contentType != "" {
		x.w.Header().Set("Content-Type", contentType)
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.recordCall()
	x.w.WriteHeader(code)
	if x.r.Method != http.MethodHead {
		_, _ = x.w.Write(body) // fails if the client has disconnected
	}
}

func encodeStatus(s *metav1.Status, asProtobuf bool) (contentType string, body []byte) {
	s = s.DeepCopy()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if s.Status == "" {
		s.Status = metav1.StatusFailure
	}
	if asProtobuf {
		var buf bytes.Buffer
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(s, &buf); err == nil {
			return typeProtobuf, buf.Bytes()
		}
	}
	body, err := json.Marshal(s)
	if err != nil {
		panic(err) // every Status can be encoded
	}
	return typeJSON, body
}

// errorEvent encodes the last frame of a watch that the server ends with an
// error.
func errorEvent(s *metav1.Status, asProtobuf bool) []byte {
	_, object := encodeStatus(s, asProtobuf)
	if !asProtobuf {
		return append(append([]byte(`{"type":"ERROR","object":`), object...), "}\n"...)
	}
	event := metav1.WatchEvent{Type: "ERROR", Object: runtime.RawExtension{Raw: object}}
	message, err := event.Marshal()
	if err != nil {
		panic(err) // an event is two byte fields, which can always be encoded
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}
