package judge

// Silence describes how a project can accept a finding.
type Silence struct {
	// Add holds the lines to add to koboshi.yaml.
	Add string `json:"add"`
	// Wrong explains in one sentence when accepting the finding would be wrong.
	Wrong string `json:"wrong"`
}
