package scenario

import (
	"slices"
	"strings"
)

// TakenKinds maps the kinds of children whose name a person may have used before to the least that such an
// object has. Secrets are not among them: many controllers read a Secret with a fixed name if there is one.
var TakenKinds = map[string]map[string]any{
	"ConfigMap":      {"data": map[string]any{"owner": "somebody"}},
	"Service":        {"spec": map[string]any{"ports": []any{map[string]any{"port": int64(7), "protocol": "TCP"}}}},
	"ServiceAccount": {"automountServiceAccountToken": false},
}

// PairEnd is the end of the name of a scenario with two resources in one namespace.
const (
	PairEnd  = "-two-names"
	takenEnd = "-taken-name"
)

// Taken returns a scenario in which an object of somebody else has the name of a child before the resource is
// created. The pair is a scenario NAME-two-names: its second resource shows that the controller makes such
// objects. The child is "Kind NAMESPACE/NAME". Taken returns nil if the pair is another scenario, or the kind is
// not one of TakenKinds.
func Taken(pair *Scenario, child string) *Scenario {
	kind, name, _ := strings.Cut(child, " ")
	namespace, name, namespaced := strings.Cut(name, "/")
	content, known := TakenKinds[kind]
	title, isPair := strings.CutSuffix(pair.Name, PairEnd)
	if !known || !namespaced || !isPair {
		return nil
	}
	foreign := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}}
	for key, value := range content {
		foreign[key] = value
	}
	s := *pair
	s.Name = label(title + takenEnd + "-" + strings.ToLower(kind) + "-" + name)
	s.Description = strings.Replace(pair.Description, ". Two resources in one namespace: created, and each of them deleted while the other exists.",
		". Created when an object of somebody else has the name of a child.", 1)
	s.Given = append(slices.Clone(pair.Given), Manifest{Object: foreign})
	s.Steps = nil
	for _, step := range pair.Steps {
		switch step.Name {
		case "first-alone":
			step.Name = CreateStep
		case "both":
			step.Name = "other"
		case "without-second":
			step.Name = "delete-other"
		case "without-first":
			step.Name = "delete"
		default:
			continue
		}
		step.Spares = nil
		s.Steps = append(s.Steps, step)
	}
	return &s
}
