package certificates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// These are the flags of the package internal/certificates in scaffolded projects.
const (
	secretFlag         = "webhook-self-signed-secret"
	serviceFlag        = "webhook-service"
	configurationsFlag = "webhook-configurations"
)

// selfSigned removes everything of cert-manager, and lets the manager make the certificate of the
// webhooks itself. The manager gets the right to change only the objects that it has to change.
func selfSigned(objects []unstructured.Unstructured, w *webhooks, m Manager) ([]unstructured.Unstructured, error) {
	for _, flag := range []string{secretFlag, serviceFlag, configurationsFlag} {
		if !m.HasFlag(flag) {
			return nil, fmt.Errorf("the manager has no flag --%s; get internal/certificates with koboshi edit --update, call its Options.Bind before flag.Parse, and make the webhook server in main.go with certificates.NewServer", flag)
		}
	}
	if w.argument(secretFlag) != "" {
		return objects, nil // config/default already says so
	}
	// The Secret has another name than that of cert-manager, whose type is another one and cannot change.
	name := w.service.GetName() + "-certificate"
	objects, err := w.withoutCertManager(objects)
	if err != nil {
		return nil, err
	}
	var configurations []string
	for _, c := range w.callers {
		configurations = append(configurations, c.kind+"/"+c.object.GetName())
	}
	w.addArgument(secretFlag, w.service.GetNamespace()+"/"+name)
	w.addArgument(serviceFlag, w.service.GetName())
	w.addArgument(configurationsFlag, strings.Join(configurations, ","))
	return append(objects, w.objectsOf(name)...), nil
}

// objectsOf returns the Secret, which is empty, and the roles that let the manager write it and the
// callers. All of them have the same name.
func (w *webhooks) objectsOf(name string) []unstructured.Unstructured {
	const rbac = "rbac.authorization.k8s.io/v1"
	account, _ := w.pod["serviceAccountName"].(string)
	subjects := []any{map[string]any{"kind": "ServiceAccount", "name": cmp.Or(account, "default"), "namespace": w.service.GetNamespace()}}
	role := func(kind string) map[string]any {
		return map[string]any{"subjects": subjects, "roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}}
	}
	return []unstructured.Unstructured{
		w.newObject("v1", "Secret", name, map[string]any{"type": "Opaque"}),
		w.newObject(rbac, "Role", name, map[string]any{"rules": []any{rule("", "secrets", []any{name}, "get", "update")}}),
		w.newObject(rbac, "RoleBinding", name, role("Role")),
		w.newObject(rbac, "ClusterRole", name, map[string]any{"rules": w.rules()}),
		w.newObject(rbac, "ClusterRoleBinding", name, role("ClusterRole")),
	}
}

// rules returns the rules for the callers: one for each kind.
func (w *webhooks) rules() (rules []any) {
	for _, kind := range []struct{ name, group, resource string }{
		{"mutating", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"},
		{"validating", "admissionregistration.k8s.io", "validatingwebhookconfigurations"},
		{"conversion", "apiextensions.k8s.io", "customresourcedefinitions"},
	} {
		var names []any
		for _, c := range w.callers {
			if c.kind == kind.name {
				names = append(names, c.object.GetName())
			}
		}
		if len(names) > 0 {
			rules = append(rules, rule(kind.group, kind.resource, names, "get", "patch"))
		}
	}
	return rules
}

func rule(group, resource string, names []any, verbs ...any) map[string]any {
	return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "resourceNames": names, "verbs": verbs}
}

// withoutCertManager returns the objects without those of cert-manager, and without everything that
// refers to them.
func (w *webhooks) withoutCertManager(objects []unstructured.Unstructured) (rest []unstructured.Unstructured, err error) {
	var secrets []string
	for _, o := range objects {
		if o.GroupVersionKind().Group == group {
			if name, ok, _ := unstructured.NestedString(o.Object, "spec", "secretName"); ok {
				secrets = append(secrets, name)
			}
		}
	}
	for _, c := range w.callers {
		unstructured.RemoveNestedField(c.object.Object, "metadata", "annotations", inject)
	}
	if err := w.unmount(secrets); err != nil {
		return nil, err
	}
	for _, o := range objects {
		if o.GroupVersionKind().Group == group {
			continue
		}
		if o.GetAnnotations()[inject] != "" {
			return nil, fmt.Errorf("the %s %s needs an authority of cert-manager; leave it out of config/default, or use --certificates %s", o.GetKind(), o.GetName(), CertManager)
		}
		for _, secret := range secrets {
			if mentions(o.Object, secret) {
				return nil, fmt.Errorf("the %s %s uses the Secret %s, which cert-manager writes; leave it out of config/default, or use --certificates %s", o.GetKind(), o.GetName(), secret, CertManager)
			}
		}
		rest = append(rest, o)
	}
	return rest, nil
}

// unmount removes volumes with Secrets from the manager, and the arguments that name their folders.
func (w *webhooks) unmount(secrets []string) error {
	for _, volume := range maps(w.pod["volumes"]) {
		secret, _, _ := unstructured.NestedString(volume, "secret", "secretName")
		if !slices.Contains(secrets, secret) {
			continue
		}
		for _, mount := range maps(w.container["volumeMounts"]) {
			folder, _ := mount["mountPath"].(string)
			if mount["name"] != volume["name"] {
				continue
			}
			if err := w.removeFolder(folder); err != nil {
				return err
			}
			remove(w.container, "volumeMounts", mount)
		}
		if other := w.mounter(volume["name"]); other != "" {
			return fmt.Errorf("the container %s uses the Secret %s, which cert-manager writes; leave it out of config/default, or use --certificates %s", other, secret, CertManager)
		}
		remove(w.pod, "volumes", volume)
	}
	return nil
}

// mounter returns the name of a container that mounts a volume, or "".
func (w *webhooks) mounter(volume any) string {
	for _, c := range slices.Concat(maps(w.pod["initContainers"]), maps(w.pod["containers"])) {
		for _, mount := range maps(c["volumeMounts"]) {
			if mount["name"] == volume {
				name, _ := c["name"].(string)
				return name
			}
		}
	}
	return ""
}

// removeFolder removes the arguments of the manager that name the folder of a certificate. Without
// one, controller-runtime makes a certificate for the metrics itself.
func (w *webhooks) removeFolder(folder string) error {
	var rest []any
	args := texts(w.container["args"])
	for i := 0; i < len(args); i++ {
		flag, value, joined := strings.Cut(args[i], "=")
		if !joined && i+1 < len(args) && strings.HasPrefix(flag, "-") {
			value = args[i+1]
		}
		if value != folder && !strings.HasPrefix(value, folder+"/") {
			rest = append(rest, args[i])
			continue
		}
		name := strings.TrimLeft(flag, "-")
		if !slices.Contains(folderFlags, name) && !strings.HasPrefix(name, "webhook-") && !strings.HasPrefix(name, "metrics-") {
			return fmt.Errorf("the manager reads a certificate of cert-manager with %s, which is neither that of the webhooks nor that of the metrics; leave it out of config/default, or use --certificates %s", flag, CertManager)
		}
		if !joined {
			i++
		}
	}
	w.container["args"] = rest
	return nil
}

// remove removes an item from a list of an object.
func remove(object map[string]any, field string, item map[string]any) {
	list, _ := object[field].([]any)
	object[field] = slices.DeleteFunc(slices.Clone(list), func(other any) bool {
		fields, ok := other.(map[string]any)
		return ok && fields["name"] == item["name"]
	})
}

// mentions reports whether a part of an object is a text.
func mentions(part any, text string) bool {
	switch part := part.(type) {
	case string:
		return part == text
	case []any:
		return slices.ContainsFunc(part, func(item any) bool { return mentions(item, text) })
	case map[string]any:
		for _, item := range part {
			if mentions(item, text) {
				return true
			}
		}
	}
	return false
}
