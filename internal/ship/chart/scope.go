package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rbacGroup = "rbac.authorization.k8s.io"

// addScope adds the value watchNamespaces: the manager is told to watch only these namespaces, and
// its ClusterRoles are bound only in them.
func (b *builder) addScope() error {
	if b.WatchNamespaces == "" {
		return nil
	}
	if b.setsScope() {
		return fmt.Errorf("the manifests set %s; remove it there, or remove ship.watchNamespaces from koboshi.yaml", b.WatchNamespaces)
	}
	b.values.add("watchNamespaces", "The namespaces that the manager watches. If there are any, it has rights only in them; an empty list means all namespaces.",
		[]any{}, listOf(matching("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")))
	if strings.HasPrefix(b.WatchNamespaces, "-") {
		b.append(b.manager.container, "args", fmt.Sprintf("- {{ printf \"%s=%%s\" (join \",\" .) | quote }}", b.WatchNamespaces))
	} else {
		b.append(b.manager.container, "env", fmt.Sprintf("- name: %s\n  value: {{ join \",\" . | quote }}", b.WatchNamespaces))
	}
	for _, t := range b.find(rbacGroup, "ClusterRoleBinding") {
		if b.bindsManager(t) {
			b.limit(t)
		}
	}
	return nil
}

// append adds an item to a list of a container if namespaces are given.
func (b *builder) append(container map[string]any, name, item string) {
	old, _ := container[name].([]any)
	container[name] = append(old, b.add("{{- with .Values.watchNamespaces }}\n"+item+"\n{{- end }}\n"))
}

// setsScope reports whether the objects already say which namespaces the manager watches.
func (b *builder) setsScope() bool {
	args, _ := b.manager.container["args"].([]any)
	for _, arg := range args {
		if text, ok := arg.(string); ok && (text == b.WatchNamespaces || strings.HasPrefix(text, b.WatchNamespaces+"=")) {
			return true
		}
	}
	env, _ := b.manager.container["env"].([]any)
	return slices.ContainsFunc(env, func(item any) bool {
		variable, ok := item.(map[string]any)
		return ok && variable["name"] == b.WatchNamespaces
	})
}

// bindsManager reports whether a binding is for the account of the manager.
func (b *builder) bindsManager(t *template) bool {
	subjects, _, _ := unstructured.NestedSlice(t.object.Object, "subjects")
	return slices.ContainsFunc(subjects, func(item any) bool {
		subject, ok := item.(map[string]any)
		return ok && subject["kind"] == "ServiceAccount" && subject["name"] == b.manager.account && subject["namespace"] == b.whole
	})
}

// limit replaces the binding of a ClusterRole by one in each watched namespace. What has no
// namespace stays granted for the whole cluster, by a role of its own.
func (b *builder) limit(binding *template) {
	role := b.roleOf(binding)
	if role == nil {
		return // a role of Kubernetes itself, or of another project
	}
	rules, _, _ := unstructured.NestedSlice(role.object.Object, "rules")
	inNamespaces, inCluster := b.splitRules(rules)
	if len(inNamespaces) == 0 {
		return
	}
	watched := &template{object: binding.object.DeepCopy(), suffix: binding.suffix, each: "watchNamespaces"}
	watched.object.SetKind("RoleBinding")
	watched.object.SetNamespace(b.quoted("."))
	b.templates = append(b.templates, watched)
	if len(inCluster) > 0 {
		b.limitToCluster(role, binding, inCluster)
	}
	binding.only("not .Values.watchNamespaces")
}

// limitToCluster adds the role with the rules that need no namespace, and binds it.
func (b *builder) limitToCluster(role, binding *template, rules []any) {
	const more = "-cluster"
	newRole := &template{object: role.object.DeepCopy(), suffix: role.suffix + more, conditions: []string{".Values.watchNamespaces"}}
	newRole.object.SetName(role.object.GetName() + more)
	newRole.object.Object["rules"] = rules
	newBinding := &template{object: binding.object.DeepCopy(), suffix: binding.suffix + more, conditions: []string{".Values.watchNamespaces"}}
	newBinding.object.SetName(binding.object.GetName() + more)
	fields(newBinding.object.Object, "roleRef")["name"] = newRole.object.GetName()
	b.templates = append(b.templates, newRole, newBinding)
}

// roleOf returns the ClusterRole of a binding; nil if it is not in the chart.
func (b *builder) roleOf(binding *template) *template {
	name, _, _ := unstructured.NestedString(binding.object.Object, "roleRef", "name")
	for _, t := range b.find(rbacGroup, "ClusterRole") {
		if t.object.GetName() == name {
			return t
		}
	}
	return nil
}

// splitRules separates the rules about objects in namespaces from those about other objects. Other
// projects' kinds, and all kinds at once, count as kinds in namespaces.
func (b *builder) splitRules(rules []any) (inNamespaces, inCluster []any) {
	outside := b.clusterResources()
	for _, item := range rules {
		rule, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if rule["nonResourceURLs"] != nil {
			inCluster = append(inCluster, rule)
			continue
		}
		var in, out []any
		for _, resource := range items(rule, "resources") {
			if isOutside(rule, resource, outside) {
				out = append(out, resource)
			} else {
				in = append(in, resource)
			}
		}
		inNamespaces = append(inNamespaces, withResources(rule, in)...)
		inCluster = append(inCluster, withResources(rule, out)...)
	}
	return inNamespaces, inCluster
}

// withResources returns a rule with other resources; none if there are no resources.
func withResources(rule map[string]any, resources []any) []any {
	if len(resources) == 0 {
		return nil
	}
	rule = maps.Clone(rule)
	rule["resources"] = resources
	return []any{rule}
}

// isOutside reports whether a resource of a rule is in no namespace.
func isOutside(rule map[string]any, resource any, outside map[string]bool) bool {
	name, _ := resource.(string)
	name, _, _ = strings.Cut(name, "/")
	return slices.ContainsFunc(items(rule, "apiGroups"), func(item any) bool {
		group, ok := item.(string)
		return ok && outside[name+"."+group]
	})
}

func items(object map[string]any, name string) []any {
	list, _ := object[name].([]any)
	return list
}

// clusterResources returns the resources that are in no namespace: those of Kubernetes 1.37 and of
// the chart's CRDs, each with its group after a dot.
func (b *builder) clusterResources() map[string]bool {
	outside := map[string]bool{}
	for group, resources := range map[string]string{
		"":                             "componentstatuses namespaces nodes persistentvolumes",
		"admissionregistration.k8s.io": "mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings validatingwebhookconfigurations",
		"apiextensions.k8s.io":         "customresourcedefinitions",
		"apiregistration.k8s.io":       "apiservices",
		"authentication.k8s.io":        "selfsubjectreviews tokenreviews",
		"authorization.k8s.io":         "selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews",
		"certificates.k8s.io":          "certificatesigningrequests clustertrustbundles",
		"flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
		"internal.apiserver.k8s.io":    "storageversions",
		"networking.k8s.io":            "ingressclasses ipaddresses servicecidrs",
		"node.k8s.io":                  "runtimeclasses",
		rbacGroup:                      "clusterrolebindings clusterroles",
		"resource.k8s.io":              "deviceclasses devicetaintrules resourceslices",
		"scheduling.k8s.io":            "priorityclasses",
		"storage.k8s.io":               "csidrivers csinodes storageclasses volumeattachments volumeattributesclasses",
		"storagemigration.k8s.io":      "storageversionmigrations",
	} {
		for resource := range strings.FieldsSeq(resources) {
			outside[resource+"."+group] = true
		}
	}
	for _, t := range b.find(definitionKind.Group, definitionKind.Kind) {
		if scope, _, _ := unstructured.NestedString(t.object.Object, "spec", "scope"); scope == "Cluster" {
			outside[t.object.GetName()] = true
		}
	}
	return outside
}
