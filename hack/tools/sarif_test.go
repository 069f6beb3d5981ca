// Package tools checks files of this repository against the definitions of tools that the product does
// not need.
package tools

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// written is a report of koboshi check with every kind of content. A test in internal/check/report
// ensures that it is current.
const written = "../../internal/check/report/testdata/sarif.json"

// moduleDir returns the folder of a module of this go.mod.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	for _, args := range [][]string{{"mod", "download", module}, {"list", "-m", "-f", "{{.Dir}}", module}} {
		out, err := exec.Command("go", args...).Output()
		if err != nil {
			t.Fatalf("go %s: %v", strings.Join(args, " "), err)
		}
		if args[0] == "list" {
			return strings.TrimSpace(string(out))
		}
	}
	return ""
}

// sarifSchema returns the schema of OASIS, which gosec carries for its own tests.
func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	file := filepath.Join(moduleDir(t, "github.com/securego/gosec/v2"), "report", "sarif", "testdata", "sarif-schema-2.1.0.json")
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, document []byte) error {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(parsed)
}

func TestReportsInSARIFFollowTheSchema(t *testing.T) {
	data, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	schema := sarifSchema(t)
	if err := validate(t, schema, data); err != nil {
		t.Errorf("%s: %v", written, err)
	}
	// The schema must notice mistakes, or the test above proves nothing.
	for right, wrong := range map[string]string{
		`"startLine": `:            `"startLine": -`,
		`"ruleId": `:               `"rule": `,
		`"level": "error"`:         `"level": "grave"`,
		`"partialFingerprints": {`: `"partialFingerprints": {"number": 1, `,
		`"uriBaseId": `:            `"uriBase": `,
	} {
		if !bytes.Contains(data, []byte(right)) {
			t.Errorf("the report has no %s", right)
		}
		if validate(t, schema, bytes.Replace(data, []byte(right), []byte(wrong), 1)) == nil {
			t.Errorf("the schema accepts %s", wrong)
		}
	}
}
