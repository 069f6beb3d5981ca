package scenario

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON schema (draft 7) of a scenario, for editors. Parse finds
// more mistakes than it can describe.
func Schema() []byte { return slices.Clone(schemaJSON) }
