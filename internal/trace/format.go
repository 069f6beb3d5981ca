package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WriteTo writes the header and the entries so far, one per line. Bodies are decoded and
// redacted, and known secret values are removed from lines. If a body cannot be decoded,
// WriteTo writes only its size.
func (l *Log) WriteTo(w io.Writer) (int64, error) {
	out := &counter{w: w}
	err := Write(out, Header{Started: l.started, Subject: l.Subject}, l.scrubbed())
	return out.n, err
}

// needs returns the oldest version of the format that can express the entries.
func needs(entries []Entry) int {
	version := 1
	for i := range entries {
		switch e := &entries[i]; {
		case e.Reconcile != nil:
			return Version
		case e.Review != nil || e.Line != nil || e.Commit != nil || e.Grants != nil:
			version = 2
		}
	}
	return version
}

// Write writes entries in the format that Read reads. Write sets the version of the header.
func Write(w io.Writer, h Header, entries []Entry) error {
	h.Version = needs(entries)
	buffered := bufio.NewWriterSize(w, 64<<10)
	lines := json.NewEncoder(buffered)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(h); err != nil {
		return fmt.Errorf("writing the trace's header: %w", err)
	}
	for i := range entries {
		if err := lines.Encode(&entries[i]); err != nil {
			return fmt.Errorf("writing entry %d of the trace: %w", entries[i].Seq, err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing the trace: %w", err)
	}
	return nil
}

// Read reads the output of Write. Read refuses a trace whose format is later than Version.
func Read(r io.Reader) (Header, []Entry, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	var header Header
	first, err := lines.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return Header{}, nil, fmt.Errorf("reading the trace's header: %w", err)
	}
	if err := json.Unmarshal(first, &header); err != nil {
		return Header{}, nil, fmt.Errorf("line 1 is not the header of a trace: %w", err)
	}
	switch {
	case header.Version < 1:
		return Header{}, nil, errors.New("line 1: the header has no version; the file may not be a trace")
	case header.Version > Version:
		return Header{}, nil, fmt.Errorf("line 1: the trace has version %d, but this koboshi reads versions up to %d; use a newer koboshi", header.Version, Version)
	}
	entries, err := readEntries(lines)
	return header, entries, err
}

func readEntries(lines *bufio.Reader) ([]Entry, error) {
	var entries []Entry
	var last int64
	for n := 2; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		end := err != nil
		if len(bytes.TrimSpace(line)) > 0 {
			var e Entry
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			if err := e.check(last); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			last = e.Seq
			entries = append(entries, e)
		}
		if end {
			return entries, nil
		}
	}
}

func (e *Entry) check(last int64) error {
	set := 0
	for _, is := range []bool{
		e.Call != nil, e.Watch != nil, e.Process != nil, e.Step != nil, e.Fault != nil,
		e.Review != nil, e.Line != nil, e.Commit != nil, e.Grants != nil, e.Reconcile != nil,
	} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("entry %d has %d of the fields call, watch, process, step, fault, review, line, commit, grants and reconcile; it must have exactly one", e.Seq, set)
	}
	if e.Seq <= last {
		return fmt.Errorf("entry %d follows entry %d, but the numbers must increase", e.Seq, last)
	}
	return nil
}

// counter counts the bytes written to w.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
