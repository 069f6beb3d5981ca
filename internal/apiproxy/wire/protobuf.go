package wire

import (
	"bytes"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// These are the field numbers in generated.proto of k8s.io/apimachinery. Every kind
// of the API has its metadata in field 1.
const (
	unknownType, unknownRaw   = 1, 2
	typeMetaKind              = 2
	eventType, eventObject    = 1, 2
	rawExtensionRaw           = 1
	objectMeta                = 1
	metaName, metaAnnotations = 1, 12
	metaResourceVersion       = 6
	listMetaResourceVersion   = 2
	mapKey, mapValue          = 1, 2
)

// each calls f with every length-delimited field of a message, until f returns false or
// the message ends.
func each(message []byte, f func(number protowire.Number, value []byte) bool) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return
		}
		if kind == protowire.BytesType {
			if value, _ := protowire.ConsumeBytes(message); !f(number, value) {
				return
			}
		}
		message = message[n:]
	}
}

func field(message []byte, number protowire.Number) []byte {
	var found []byte
	each(message, func(n protowire.Number, value []byte) bool {
		if n == number {
			found = value
		}
		return found == nil
	})
	return found
}

func protobufObject(data []byte, m *Meta) {
	unknown := data[len(magic):]
	m.Kind = string(field(field(unknown, unknownType), typeMetaKind))
	meta := field(field(unknown, unknownRaw), objectMeta)
	if strings.HasSuffix(m.Kind, "List") || m.Kind == "Status" {
		m.ResourceVersion = string(field(meta, listMetaResourceVersion))
		return
	}
	each(meta, func(number protowire.Number, value []byte) bool {
		switch number {
		case metaName:
			m.Name = string(value)
		case metaResourceVersion:
			m.ResourceVersion = string(value)
		case metaAnnotations:
			if string(field(value, mapKey)) == initialEventsEnd {
				m.InitialEventsEnd = string(field(value, mapValue)) == "true"
			}
		}
		return true
	})
}

func protobufEvent(frame []byte) Event {
	var e Event
	if len(frame) < prefixLen {
		return e
	}
	message := frame[prefixLen:]
	e.Type = string(field(message, eventType))
	e.Object = field(field(message, eventObject), rawExtensionRaw)
	if bytes.HasPrefix(e.Object, magic) {
		protobufObject(e.Object, &e.Meta)
	}
	return e
}
