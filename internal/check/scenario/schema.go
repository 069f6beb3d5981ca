package scenario

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON schema (draft 7) of a scenario, for editors. Parse also finds
// mistakes that a schema cannot describe.
func Schema() []byte { return slices.Clone(schemaJSON) }
