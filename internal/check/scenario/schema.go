package scenario

import (
	_ "embed"
	"slices"
)

//go:embed schema.json
var schemaJSON []byte

// Schema is the JSON schema (draft 7) of a scenario, for editors. Parse sees more
// mistakes than it can describe.
func Schema() []byte { return slices.Clone(schemaJSON) }
