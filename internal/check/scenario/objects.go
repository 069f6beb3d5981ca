package scenario

import "encoding/json"

// Objects returns what the scenario itself writes: the objects of its manifests, and its patches,
// each as an object with the kind of the patched object. The objects must not be changed. Objects
// omits manifests that are still files.
func (s *Scenario) Objects() (all []map[string]any) {
	add := func(manifests []Manifest) {
		for _, m := range manifests {
			if m.Object != nil {
				all = append(all, m.Object)
			}
		}
	}
	add(s.Given)
	for _, step := range s.Steps {
		add(step.Apply)
		if step.Patch == nil {
			continue
		}
		for _, data := range []json.RawMessage{step.Patch.Merge, step.Patch.JSON} {
			var content any
			if len(data) > 0 && json.Unmarshal(data, &content) == nil {
				all = append(all, map[string]any{"apiVersion": step.Patch.APIVersion, "kind": step.Patch.Kind, "patch": content})
			}
		}
	}
	return all
}
