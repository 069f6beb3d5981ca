package wire

import "bytes"

const initialEventsEnd = "k8s.io/initial-events-end"

var magic = []byte("k8s\x00")

// Meta holds the parts of an object or a list that Peek reads.
type Meta struct {
	Kind            string
	Name            string
	ResourceVersion string
	// InitialEventsEnd reports whether this is the bookmark after a watch's initial
	// events.
	InitialEventsEnd bool
}

// Event is an event of a watch. Object is a part of the frame, encoded like a body of
// the same content type.
type Event struct {
	Meta
	Type   string
	Object []byte
}

// Peek reads the metadata of an object or list in JSON or protobuf. If the data is
// truncated or becomes invalid, Peek returns what it found before that point.
func Peek(data []byte) Meta {
	var m Meta
	if bytes.HasPrefix(data, magic) {
		protobufObject(data, &m)
		return m
	}
	c := &cursor{b: data}
	c.object(&m)
	return m
}

// ParseEvent reads a frame of a watch.
func ParseEvent(frame []byte, protobuf bool) Event {
	if protobuf {
		return protobufEvent(frame)
	}
	return jsonEvent(frame)
}
