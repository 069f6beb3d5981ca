package inspect

import (
	"time"
)

// ConditionChange is a change of a condition in the status of an object.
type ConditionChange struct {
	At              time.Duration `json:"at"`
	ResourceVersion int64         `json:"resourceVersion"`
	Type            string        `json:"type"`
	// From and To are the values of status. From is empty if the condition is new, and To if
	// it was removed.
	From    string `json:"from"`
	To      string `json:"to"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Manager is the field manager that made the change.
	Manager string `json:"manager,omitempty"`
}

// Conditions returns the changes of the conditions of an object, in their order. Changes of only a
// time are left out.
func (s *Session) Conditions(ref Ref) []ConditionChange {
	changes := []ConditionChange{}
	o := s.objects[ref]
	if o == nil {
		return changes
	}
	before := map[string]condition{}
	for _, v := range o.versions {
		if v.deleted {
			continue
		}
		content := s.content(v)
		now, order := conditionsOf(content)
		for _, name := range order {
			if was, is := before[name], now[name]; was != is {
				by := authorOf(content, []step{{field: "status"}, {field: "conditions"}, {field: "type", id: name}})
				changes = append(changes, ConditionChange{v.at, v.rv, name, was.status, is.status, is.reason, is.message, by})
			}
		}
		for name, was := range before {
			if _, still := now[name]; !still {
				changes = append(changes, ConditionChange{At: v.at, ResourceVersion: v.rv, Type: name, From: was.status})
			}
		}
		before = now
	}
	return changes
}

type condition struct{ status, reason, message string }

func conditionsOf(content map[string]any) (by map[string]condition, order []string) {
	by = map[string]condition{}
	status, _ := content["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(key string) string { t, _ := m[key].(string); return t }
		if text("type") == "" {
			continue
		}
		by[text("type")] = condition{text("status"), text("reason"), text("message")}
		order = append(order, text("type"))
	}
	return by, order
}

// summary returns the condition that shows the state of an object at a glance.
func summary(content map[string]any) string {
	by, _ := conditionsOf(content)
	for _, name := range []string{"Ready", "Available", "Established", "Complete", "Succeeded"} {
		if c, found := by[name]; found {
			if c.status == "True" || c.reason == "" {
				return name + "=" + c.status
			}
			return name + "=" + c.status + " (" + c.reason + ")"
		}
	}
	return ""
}
