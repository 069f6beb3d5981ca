// Package tools offers the questions of the inspector as tools of the Model Context Protocol, so
// that a coding agent can go from a symptom to the write that caused it. The tools only read.
package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/source"
)

const (
	// usualLimit is the number of results if the agent names none, and mostBytes the maximum size
	// of an answer, which has to fit into the context of an agent.
	usualLimit = 20
	mostBytes  = 60_000
)

// instructions tells agents where to begin.
const instructions = "Explains what a Kubernetes controller did, from a recording of its requests, events and output. " +
	"Begin with overview: it names what is unusual. Then ask why, writes or timeline about an object, and diff for the fields that a version changed. " +
	"Times are nanoseconds since the start of the session. What is listed as inferred is a guess. The values of Secrets are replaced by digests."

// Serve answers the calls of one agent until the input or the context ends.
func Serve(ctx context.Context, s source.Source, in io.ReadCloser, out io.WriteCloser) error {
	return server(s).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
}

func server(s source.Source) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "koboshi", Title: "Koboshi inspector", Version: "1"}, &mcp.ServerOptions{Instructions: instructions})
	closed := false
	for _, q := range inspect.Questions {
		server.AddTool(&mcp.Tool{
			Name: q.Name, Description: "Returns " + q.Short + ".", InputSchema: schema(q),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed},
		}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := answer(ctx, s, q, r.Params.Arguments)
			if err != nil {
				// An agent can correct a wrong argument if it sees the error.
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	}
	return server
}

// arguments are the parameters of all tools. A nil limit means the usual one.
type arguments struct {
	Object    string `json:"object"`
	Namespace string `json:"namespace"`
	Filter    string `json:"filter"`
	After     int64  `json:"after"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Seq       int64  `json:"seq"`
	Limit     *int   `json:"limit"`
	Offset    int    `json:"offset"`
}

// described describes the parameters.
var described = map[string]map[string]any{
	"object":    {"type": "string", "description": "KIND/NAME or KIND/NAMESPACE/NAME, such as Deployment.apps/default/web"},
	"namespace": {"type": "string", "description": "the namespace, if KIND/NAME names several objects"},
	"filter":    {"type": "string", "description": "words that the kind, the namespace or the name must contain"},
	"after":     {"type": "integer", "description": "leaves out everything up to the entry with this number (seq)"},
	"from":      {"type": "integer", "description": "the resource version of the earlier state; by default, the one before the later state"},
	"to":        {"type": "integer", "description": "the resource version of the later state; by default, the last one"},
	"seq":       {"type": "integer", "description": "the number of the entry"},
	"limit":     {"type": "integer", "minimum": 1, "maximum": 500, "description": fmt.Sprintf("the number of results, by default %d; if the results are ordered by time, the last ones are returned", usualLimit)},
	"offset":    {"type": "integer", "minimum": 0, "description": "the number of results to skip"},
}

func schema(q inspect.Question) map[string]any {
	properties, required := map[string]any{}, []string{}
	if q.About != inspect.None {
		properties["object"], properties["namespace"] = described["object"], described["namespace"]
	}
	if q.About == inspect.Required {
		required = append(required, "object")
	}
	for _, name := range q.Parameters {
		properties[name] = described[name]
		if name == "seq" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func answer(ctx context.Context, s source.Source, q inspect.Question, given json.RawMessage) (string, error) {
	var a arguments
	if len(given) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(given))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&a); err != nil {
			return "", fmt.Errorf("the arguments do not fit the schema: %w", err)
		}
	}
	limit := usualLimit
	if a.Limit != nil {
		limit = *a.Limit
	}
	out, err := s.Ask(ctx, q, inspect.Query{
		Object: a.Object, Namespace: a.Namespace, Filter: a.Filter, After: a.After, From: a.From, To: a.To, Seq: a.Seq, Limit: limit, Offset: a.Offset,
	})
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(out)
	if err != nil {
		return "", fmt.Errorf("encoding the answer: %w", err)
	}
	if len(data) > mostBytes {
		return "", fmt.Errorf("the answer has %d bytes, more than %d; ask for fewer results with limit, or about one object", len(data), mostBytes)
	}
	return string(data), nil
}
