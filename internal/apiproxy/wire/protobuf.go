package wire

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// The numbers are those of generated.proto in k8s.io/apimachinery. That metadata
// is number 1 is true of every kind of the API.
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

// each calls f with every length-delimited field of a message, until f reports
// false or the message ends.
func each(message []byte, f func(number uint64, value []byte) bool) {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return
		}
		message = message[n:]
		switch tag & 7 {
		case 0:
			if _, n = binary.Uvarint(message); n <= 0 {
				return
			}
		case 1:
			n = 8
		case 5:
			n = 4
		case 2:
			size, m := binary.Uvarint(message)
			if m <= 0 || size > uint64(len(message)-m) {
				return
			}
			if !f(tag>>3, message[m:m+int(size)]) {
				return
			}
			n = m + int(size)
		default:
			return
		}
		if n > len(message) {
			return
		}
		message = message[n:]
	}
}

func field(message []byte, number uint64) []byte {
	var found []byte
	each(message, func(n uint64, value []byte) bool {
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
	each(meta, func(number uint64, value []byte) bool {
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
