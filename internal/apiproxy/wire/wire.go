package wire

import "bytes"

const initialEventsEnd = "k8s.io/initial-events-end"

var magic = []byte("k8s\x00")

// Meta is what is looked for in an object or a list.
type Meta struct {
	Kind            string
	Name            string
	ResourceVersion string
	// InitialEventsEnd says that this is the bookmark after a watch's initial
	// events.
	InitialEventsEnd bool
}

// Event is an event of a watch. Object is a part of the frame, and is encoded as
// a body of the same type would be.
type Event struct {
	Meta
	Type   string
	Object []byte
}

// Peek reads the metadata of an object or list in JSON or protobuf. Of data that
// is cut off, or is neither, it returns what it found.
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
