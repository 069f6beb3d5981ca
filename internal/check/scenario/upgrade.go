package scenario

import "strings"

// Founding returns the part of a scenario that makes the objects which exist before an upgrade: the
// steps before the first one that deletes something, or that the controller does not see. It returns nil
// if there are none. Of the scenarios that were generated from a sample, only one has such a part.
func (s *Scenario) Founding(generated bool) *Scenario {
	if generated && !strings.HasSuffix(s.Name, "-life") {
		return nil
	}
	found := *s
	found.Steps = nil
	for _, step := range s.Steps {
		if step.Delete != nil || step.WhileDown || step.SameAs != "" {
			break
		}
		found.Steps = append(found.Steps, step)
	}
	if len(found.Steps) == 0 {
		return nil
	}
	return &found
}
