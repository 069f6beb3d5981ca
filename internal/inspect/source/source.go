// Package source opens what can be inspected: the file of a trace, the file of a finding of
// koboshi check, and the address of a session that is running.
package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/api"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Source answers questions.
type Source interface {
	// Ask returns the answer, with the type that the question's New returns.
	Ask(ctx context.Context, q inspect.Question, with inspect.Query) (any, error)
	// Export writes the complete session as a trace file.
	Export(ctx context.Context, w io.Writer) error
}

// ErrStill is the error of following something that does not grow.
var ErrStill = errors.New("a file does not grow; --follow needs the address of a running session")

// Open opens a file or an address.
func Open(name string) (Source, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return api.NewClient(name)
	}
	session, err := Load(name)
	if err != nil {
		return nil, err
	}
	return still{session}, nil
}

// Load reads the file of a trace or of a finding.
func Load(name string) (*inspect.Session, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w; name the file of a trace, the file of a finding, or the address of a session", err)
	}
	var kind struct{ Finding json.RawMessage }
	if json.Unmarshal(data, &kind) == nil && kind.Finding != nil {
		return finding(name)
	}
	header, entries, err := trace.Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s is neither a trace nor a finding of koboshi check: %w", name, err)
	}
	return inspect.Of(header, entries), nil
}

func finding(name string) (*inspect.Session, error) {
	saved, err := report.LoadFinding(name)
	if err != nil {
		return nil, err
	}
	if len(saved.Trace) == 0 {
		return nil, fmt.Errorf("the trace of %s is missing; put it into the same folder, or run koboshi check replay %s again", name, name)
	}
	return inspect.Of(trace.Header{Subject: saved.Finding.Sentence}, saved.Trace), nil
}

// still answers from a session that does not grow.
type still struct{ session *inspect.Session }

// Ask answers from the session.
func (s still) Ask(_ context.Context, q inspect.Question, with inspect.Query) (any, error) {
	answer, err := s.session.Answer(q, with)
	if err != nil {
		return nil, err
	}
	// Encoding and decoding give the answer the same form as over the network.
	data, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("answering %s: %w", q.Name, err)
	}
	out := q.New()
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("answering %s: %w", q.Name, err)
	}
	return out, nil
}

// Export writes the session.
func (s still) Export(_ context.Context, w io.Writer) error { return s.session.Write(w) }
