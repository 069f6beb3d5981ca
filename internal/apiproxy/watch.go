package apiproxy

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/apiproxy/wire"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// watch forwards a watch: this goroutine writes to the client unless the stream is held,
// and another goroutine reads from the server.
func (p *Proxy) watch(x *exchange) {
	if p.oldServer && isTrue(x.asked.query, "sendInitialEvents") {
		x.call.Injected = true
		x.sendStatus(refuseInitialEvents(), 0)
		return
	}
	if p.resumesExpired(x) {
		x.endAtOnce()
		return
	}
	// Accept-Encoding is removed because frames cannot be found in a compressed stream; API
	// servers do not compress watches anyway. CBOR is removed from Accept because package
	// wire cannot read it; to the client, the server seems not to support CBOR.
	x.r.Header.Del("Accept-Encoding")
	x.r.Header["Accept"] = withoutCBOR(x.r.Header["Accept"])
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	resp, err := p.transport.RoundTrip(x.outgoing(ctx, p.location(x.r.URL), p.upstream.url.Host))
	if err != nil {
		x.unreachable(err)
	}
	defer resp.Body.Close()
	if x.action.Drop {
		x.call.Lost = true
		x.fail("")
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || (media != typeJSON && media != typeProtobuf) {
		x.asked.stream = resp.StatusCode == http.StatusOK
		x.relay(resp)
		return
	}
	x.call.Code = resp.StatusCode
	x.recordCall()
	// The watch is registered before the client gets the response, so that Hold and
	// Expire reach every watch that a client has.
	s := p.open(x, media == typeProtobuf)
	defer p.close(s)
	copyHeader(x.w, resp)
	x.w.WriteHeader(resp.StatusCode)
	x.flush()
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.readFrom(resp.Body)
	}()
	p.deliver(x, s)
	cancel()
	s.close()
	<-read
}

// readFrom queues what the server sends.
func (s *stream) readFrom(r io.Reader) {
	frames := wire.NewFrames(r, s.protobuf)
	for {
		frame, err := frames.Next()
		if len(frame) > 0 {
			s.push(frame, wire.ParseEvent(frame, s.protobuf))
		}
		if err != nil {
			s.finish(errors.Is(err, io.EOF))
			return
		}
	}
}

// deliver forwards the queue until the stream ends.
func (p *Proxy) deliver(x *exchange, s *stream) {
	for {
		e, state := s.next()
		switch state {
		case isEvent:
			x.recordEvent(s, e)
			if _, err := x.w.Write(e.frame); err != nil {
				x.recordEnd(s, false)
				return
			}
		case isIdle:
			if s.sent() {
				x.flush()
				s.delivered()
				p.changed.Fire()
				continue
			}
			select {
			case <-s.wake:
			case <-x.r.Context().Done():
				x.recordEnd(s, false)
				return
			}
		case isExpired:
			x.expire(s)
			return
		case isEnd:
			x.recordEnd(s, false)
			return
		case isBroken:
			x.recordEnd(s, false)
			abort()
		}
	}
}

func (x *exchange) recordEvent(s *stream, e event) {
	if x.log == nil || e.Type == "" { // an empty type: the last bytes of a truncated stream
		return
	}
	contentType := typeJSON
	if s.protobuf {
		contentType = typeProtobuf
	}
	x.record(trace.Entry{Watch: &trace.Watch{
		Call:            s.call,
		Target:          s.target,
		Type:            e.Type,
		ResourceVersion: e.ResourceVersion,
		RawObject:       trace.NewBody(e.Object, contentType, ""),
		Held:            e.held,
	}})
}

func (x *exchange) recordEnd(s *stream, injected bool) {
	x.record(trace.Entry{Watch: &trace.Watch{Call: s.call, Target: s.target, Type: "CLOSED", Injected: injected}})
}

// expire ends the stream like an API server that no longer has the next events.
func (x *exchange) expire(s *stream) {
	gone := expired()
	_, object := encodeStatus(gone, s.protobuf)
	contentType := typeJSON
	if s.protobuf {
		contentType = typeProtobuf
	}
	x.record(trace.Entry{Watch: &trace.Watch{
		Call: s.call, Target: s.target, Type: "ERROR", Injected: true,
		RawObject: trace.NewBody(object, contentType, ""),
	}})
	_, _ = x.w.Write(errorEvent(gone, s.protobuf))
	x.flush()
	x.recordEnd(s, true)
}

// endAtOnce answers a watch that resumes an expired watch, and ends the new watch
// immediately.
func (x *exchange) endAtOnce() {
	asProtobuf := strings.HasPrefix(x.r.Header.Get("Accept"), typeProtobuf)
	contentType := typeJSON
	if asProtobuf {
		contentType = typeProtobuf
	}
	x.w.Header().Set("Content-Type", contentType+";stream=watch")
	x.w.WriteHeader(http.StatusOK)
	x.call.Code = http.StatusOK
	x.call.Injected = true
	x.recordCall()
	x.expire(&stream{call: x.call.ID, target: x.asked.target, protobuf: asProtobuf})
}

// refuseInitialEvents returns the error that apimachinery's ValidateListOptions returns
// when WatchList is off.
func refuseInitialEvents() *metav1.Status {
	err := apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"),
	})
	s := err.Status()
	return &s
}

func withoutCBOR(accept []string) []string {
	var kept []string
	for _, part := range strings.Split(strings.Join(accept, ","), ",") {
		if part = strings.TrimSpace(part); part != "" && !strings.HasPrefix(part, "application/cbor") {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return accept
	}
	return []string{strings.Join(kept, ",")}
}
