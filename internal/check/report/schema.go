package report

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON schema (draft 7) of the report that WriteJSON writes.
func Schema() []byte { return slices.Clone(schemaJSON) }
