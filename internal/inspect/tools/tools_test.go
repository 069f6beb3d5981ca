package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/source"
)

// connect starts a server over pipes, as an agent does with a program, and returns a client.
func connect(t *testing.T) *mcp.ClientSession {
	t.Helper()
	s, err := source.Open("../testdata/session.trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(context.WithoutCancel(t.Context()), s, in, out) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	return session
}

func call(t *testing.T, session *mcp.ClientSession, name string, arguments map[string]any) (string, bool) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(result.Content) != 1 {
		t.Fatalf("%s: %d contents", name, len(result.Content))
	}
	return result.Content[0].(*mcp.TextContent).Text, result.IsError
}

func TestAnAgentGetsFromWhatIsUnusualToTheWriteThatCausedIt(t *testing.T) {
	session := connect(t)
	text, _ := call(t, session, "overview", nil)
	var o inspect.Overview
	if err := json.Unmarshal([]byte(text), &o); err != nil || len(o.Notices) != 1 {
		t.Fatalf("%s, %v", text, err)
	}
	object := o.Notices[0].Object.String()
	text, _ = call(t, session, "why", map[string]any{"object": object, "limit": 1})
	var reconciles []inspect.Reconcile
	if err := json.Unmarshal([]byte(text), &reconciles); err != nil || len(reconciles) != 1 || len(reconciles[0].Writes) != 1 {
		t.Fatalf("%s, %v", text, err)
	}
	text, _ = call(t, session, "diff", map[string]any{"object": object, "to": reconciles[0].Writes[0].After})
	if !strings.Contains(text, `"path":"status.lastSync"`) {
		t.Errorf("%s", text)
	}
}

func TestEveryQuestionIsAToolThatOnlyReads(t *testing.T) {
	session := connect(t)
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != len(inspect.Questions) {
		t.Fatalf("%d tools, %v", len(tools.Tools), err)
	}
	for _, tool := range tools.Tools {
		if !tool.Annotations.ReadOnlyHint || len(tool.Description) < 20 {
			t.Errorf("%s: %+v, %s", tool.Name, tool.Annotations, tool.Description)
		}
		arguments := map[string]any{}
		properties := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		for name, value := range map[string]any{"object": "widget/default/demo", "seq": 5} {
			if properties[name] != nil {
				arguments[name] = value
			}
		}
		if text, failed := call(t, session, tool.Name, arguments); failed || !json.Valid([]byte(text)) {
			t.Errorf("%s: %s", tool.Name, text)
		}
	}
}

func TestAMistakeOfAnAgentIsAnAnswerThatItCanRead(t *testing.T) {
	session := connect(t)
	for name, c := range map[string]struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		"no object":         {"owners", nil, "needs an object"},
		"an unknown object": {"owners", map[string]any{"object": "pod/x"}, "the session contains no pod/x"},
		"another argument":  {"owners", map[string]any{"objct": "x"}, "do not fit the schema"},
		"another type":      {"entry", map[string]any{"seq": "x"}, "do not fit the schema"},
		"an unknown entry":  {"entry", map[string]any{"seq": 999}, "the last one is 32"},
	} {
		text, failed := call(t, session, c.tool, c.arguments)
		if !failed || !strings.Contains(text, c.want) {
			t.Errorf("%s: %v, %s", name, failed, text)
		}
	}
}

// large answers with more than an agent can read.
type large struct{ source.Source }

func (large) Ask(context.Context, inspect.Question, inspect.Query) (any, error) {
	return strings.Repeat("x", mostBytes), nil
}

func TestAnAnswerThatIsTooLargeNamesTheWayOut(t *testing.T) {
	q, _ := inspect.Named("timeline")
	if _, err := answer(t.Context(), large{}, q, nil); err == nil || !strings.Contains(err.Error(), "ask for fewer results with limit") {
		t.Error(fmt.Sprint(err))
	}
}
