// Package wire reads the parts of bodies and watch streams that a proxy needs: where an event ends,
// its type, a name and a resourceVersion. The package skips everything else, and so takes only a
// fraction of the time that full decoding would take.
package wire

import "bytes"

// cursor is a position in a JSON document. The cursor's methods return false at the end of the data
// and at anything that is not JSON.
type cursor struct {
	b []byte
	i int
}

func (c *cursor) peek() byte {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r', ',', ':':
			c.i++
		default:
			return c.b[c.i]
		}
	}
	return 0
}

// text reads a string without resolving escapes: resource versions, names and types of
// events contain none.
func (c *cursor) text() ([]byte, bool) {
	if c.peek() != '"' {
		return nil, false
	}
	c.i++
	start := c.i
	for {
		end := bytes.IndexByte(c.b[c.i:], '"')
		if end < 0 {
			return nil, false
		}
		c.i += end + 1
		if !escaped(c.b[start : c.i-1]) {
			return c.b[start : c.i-1], true
		}
	}
}

// escaped reports whether backslashes at the end of text escape the byte that follows it.
func escaped(text []byte) bool {
	n := 0
	for i := len(text) - 1; i >= 0 && text[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// skip moves past one value.
func (c *cursor) skip() bool {
	switch c.peek() {
	case 0:
		return false
	case '"':
		_, ok := c.text()
		return ok
	case '{', '[':
		return c.skipNested()
	}
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return true
		}
		c.i++
	}
	return true
}

func (c *cursor) skipNested() bool {
	depth := 0
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case '"':
			if _, ok := c.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		c.i++
		if depth == 0 {
			return true
		}
	}
	return false
}

// fields calls the function each with every key of an object. The function each moves past
// the value and reports whether to continue.
func (c *cursor) fields(each func(key []byte) bool) bool {
	if c.peek() != '{' {
		return false
	}
	c.i++
	for {
		if c.peek() == '}' {
			c.i++
			return true
		}
		key, ok := c.text()
		if !ok || !each(key) {
			return false
		}
	}
}

func (c *cursor) meta(m *Meta) bool {
	return c.fields(func(key []byte) bool {
		switch string(key) {
		case "name":
			return c.set(&m.Name)
		case "resourceVersion":
			return c.set(&m.ResourceVersion)
		case "annotations":
			return c.annotations(m)
		}
		return c.skip()
	})
}

func (c *cursor) annotations(m *Meta) bool {
	if c.peek() != '{' {
		return c.skip()
	}
	return c.fields(func(key []byte) bool {
		if string(key) != initialEventsEnd {
			return c.skip()
		}
		value, ok := c.text()
		m.InitialEventsEnd = string(value) == "true"
		return ok
	})
}

func (c *cursor) set(to *string) bool {
	if c.peek() != '"' {
		return c.skip()
	}
	text, ok := c.text()
	*to = string(text)
	return ok
}

func (c *cursor) object(m *Meta) {
	_ = c.fields(func(key []byte) bool {
		switch string(key) {
		case "kind":
			return c.set(&m.Kind)
		case "metadata":
			// Nothing after metadata is read, because API servers write kind before
			// metadata.
			c.meta(m)
			return false
		}
		return c.skip()
	})
}

func jsonEvent(data []byte) Event {
	var e Event
	c := &cursor{b: data}
	c.fields(func(key []byte) bool {
		switch string(key) {
		case "type":
			return c.set(&e.Type)
		case "object":
			c.peek()
			start := c.i
			end := bytes.LastIndexByte(data, '}')
			if end < start {
				return false
			}
			e.Object = data[start:end]
			inner := &cursor{b: e.Object}
			inner.object(&e.Meta)
			if e.Type != "" {
				return false
			}
			// The type comes after the object, so the object must be skipped exactly.
			ok := c.skip()
			e.Object = data[start:c.i]
			return ok
		}
		return c.skip()
	})
	e.Object = bytes.TrimSpace(e.Object)
	return e
}
