package chart

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// percentOrNumber describes a number of Pods, which is at least that given, or a percentage of them,
// which matches a pattern.
func percentOrNumber(percentages string, least int) rule {
	return rule{"type": []any{"integer", "string"}, "minimum": least, "pattern": percentages}
}

// addDisruptionBudget adds the values of the budget that limits evictions of the manager; without
// one in the objects, it adds one.
func (b *builder) addDisruptionBudget() error {
	if b.manager.object.GetKind() == "DaemonSet" {
		return nil // kubectl drain does not evict its Pods
	}
	t := b.disruptionBudget()
	b.values.add("podDisruptionBudget.enabled", "Limits how many Pods of the manager may be evicted at the same time, such as when nodes are drained.", t != nil, boolean())
	if t == nil {
		selector, _, _ := unstructured.NestedMap(b.manager.object.Object, "spec", "selector")
		t = b.newTemplate("policy/v1", "PodDisruptionBudget", "controller-manager", map[string]any{
			"maxUnavailable": int64(1), "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": selector,
		})
		b.templates = append(b.templates, t)
	}
	t.only(".Values.podDisruptionBudget.enabled")
	spec := fields(t.object.Object, "spec")
	least, most := spec["minAvailable"], spec["maxUnavailable"]
	if least == nil {
		least = ""
	}
	b.values.add("podDisruptionBudget.maxUnavailable", "The number or percentage of Pods that may be unavailable.", number(most, 1), percentOrNumber("^[0-9]+%$", 0))
	b.values.add("podDisruptionBudget.minAvailable", "The number or percentage of Pods that must stay available; it replaces maxUnavailable. With 1 and a single Pod, its node cannot be drained.", least, percentOrNumber("^([0-9]+%)?$", 1))
	delete(spec, "minAvailable")
	delete(spec, "maxUnavailable")
	b.field(spec, "{{- with .Values.podDisruptionBudget.minAvailable }}\nminAvailable: {{ . }}\n{{- else }}\nmaxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}\n{{- end }}\n")
	return nil
}

// disruptionBudget returns the budget of the manager's Pods; nil if there is none.
func (b *builder) disruptionBudget() *template {
	pods, _ := b.podTemplate()
	labels := inner(inner(pods, "metadata"), "labels")
	for _, t := range b.find("policy", "PodDisruptionBudget") {
		selector := inner(inner(t.object.Object, "spec"), "selector")
		if selects(inner(selector, "matchLabels"), labels) {
			return t
		}
	}
	return nil
}

// addPriority adds the value of the manager's PriorityClass. A class in the chart is called after the
// release, so its name is not a value.
func (b *builder) addPriority(podSpec map[string]any) {
	class, _ := podSpec["priorityClassName"].(string)
	delete(podSpec, "priorityClassName")
	comment, otherwise := "The PriorityClass of the manager's Pods.", ""
	if class != "" {
		comment = "Another PriorityClass for the manager's Pods than " + b.readable(class) + "."
		otherwise = "{{- else }}\npriorityClassName: " + class + "\n"
	}
	b.values.add("priorityClassName", comment, "", anyText())
	b.field(podSpec, "{{- with .Values.priorityClassName }}\npriorityClassName: {{ . | quote }}\n"+otherwise+"{{- end }}\n")
}
