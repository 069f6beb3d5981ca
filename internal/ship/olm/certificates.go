package olm

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// served is the folder in which OLM mounts the certificate of webhooks, in the files tls.crt and
// tls.key. It is also the default of controller-runtime.
const served = "/tmp/k8s-webhook-server/serving-certs"

// injection is the beginning of the annotations by which cert-manager inserts authorities, and injected
// the one that names a Certificate.
const (
	injection = "cert-manager.io/inject-"
	injected  = injection + "ca-from"
)

// certified has the Secrets that cert-manager would fill, and that do not exist with OLM.
type certified struct {
	// webhooks are the Secrets for the Services of webhooks, for which OLM has its own.
	webhooks []string
	// others are all other Secrets, such as the one for metrics.
	others []string
}

// findCertificates finds out what the certificates of the installation are for. The objects of
// cert-manager are left out, because OLM issues the certificates of webhooks itself, and a bundle
// cannot have others.
func (m *maker) findCertificates() error {
	known := m.webhookNames()
	for _, c := range m.certificates {
		secret := textAt(c.Object, "spec", "secretName")
		if c.GetKind() != "Certificate" || secret == "" {
			continue
		}
		names, _ := mapAt(c.Object, "spec")["dnsNames"].([]any)
		names = append(names, c.GetNamespace()+"/"+c.GetName())
		if slices.ContainsFunc(names, func(name any) bool { text, ok := name.(string); return ok && known[text] }) {
			m.certified.webhooks = append(m.certified.webhooks, secret)
		} else {
			m.certified.others = append(m.certified.others, secret)
		}
	}
	for _, o := range m.held {
		annotations := o.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, injection) })
		if len(annotations) == 0 {
			annotations = nil // so that the field is removed
		}
		o.SetAnnotations(annotations)
	}
	if len(m.certificates) > 0 {
		m.note("OLM issues the certificates of webhooks, so the bundle does not have %s", titles(m.certificates))
	}
	return nil
}

// webhookNames returns the names by which certificates of webhooks are known: the hosts of their
// Services, and the names in annotations, such as sea/serving-cert.
func (m *maker) webhookNames() map[string]bool {
	known := map[string]bool{}
	add := func(service map[string]any) {
		host := textAt(service, "name") + "." + m.namespace
		for _, suffix := range []string{"", ".svc", ".svc.cluster.local"} {
			known[host+suffix] = true
		}
	}
	for _, c := range m.configurations {
		known[c.GetAnnotations()[injected]] = true
		for _, w := range listAt(c.Object, "webhooks") {
			add(mapAt(w, "clientConfig", "service"))
		}
	}
	for _, o := range m.held {
		if conversionOf(o) != nil {
			known[o.GetAnnotations()[injected]] = true
			add(conversionOf(o, "clientConfig", "service"))
		}
	}
	return known
}

// leaveOutCertificates removes the volumes of a Deployment whose Secrets do not exist with OLM. What
// names a file of a webhook's certificate then names OLM's file; arguments and variables that name
// another certificate are removed, so that the program uses its default.
func (m *maker) leaveOutCertificates(d unstructured.Unstructured, serves bool) {
	pod := mapAt(d.Object, "spec", "template", "spec")
	containers := slices.Concat(listAt(pod, "initContainers"), listAt(pod, "containers"))
	for _, v := range listAt(pod, "volumes") {
		name, secret := textAt(v, "name"), textAt(v, "secret", "secretName")
		issued := slices.Contains(m.certified.webhooks, secret)
		webhook := serves && (issued || secret != "" && mountsAt(containers, name, served))
		if !webhook && !issued && !slices.Contains(m.certified.others, secret) {
			continue
		}
		removeNamed(pod, "volumes", name)
		var removed []string
		for _, c := range containers {
			for _, mount := range listAt(c, "volumeMounts") {
				switch at := textAt(mount, "mountPath"); {
				case textAt(mount, "name") != name:
				case webhook:
					relocate(c, at, path.Join(served, textAt(mount, "subPath")))
				default:
					removed = append(removed, forget(c, at)...)
				}
			}
			removeNamed(c, "volumeMounts", name)
		}
		if !webhook {
			m.note("OLM has no certificate for the Secret %s, so in a bundle, %s has no volume %s and nothing that names its files: %s", secret, title(d), name, cmp.Or(strings.Join(removed, ", "), "no argument"))
		}
	}
}

// mountsAt reports whether a container mounts a volume at a path.
func mountsAt(containers []map[string]any, volume, at string) bool {
	return slices.ContainsFunc(containers, func(c map[string]any) bool {
		return slices.ContainsFunc(listAt(c, "volumeMounts"), func(mount map[string]any) bool {
			return textAt(mount, "name") == volume && path.Clean(textAt(mount, "mountPath")) == at
		})
	})
}

// removeNamed removes the items with a name from a list, and the list if nothing is left.
func removeNamed(of map[string]any, field, name string) {
	list, _ := of[field].([]any)
	list = slices.DeleteFunc(list, func(item any) bool {
		content, ok := item.(map[string]any)
		return ok && content["name"] == name
	})
	of[field] = list
	if len(list) == 0 {
		delete(of, field)
	}
}

// relocate replaces a folder in the arguments and the variables of a container.
func relocate(c map[string]any, from, to string) {
	for _, field := range []string{"command", "args"} {
		list, _ := c[field].([]any)
		for i, arg := range list {
			if flag, value := splitArgument(arg); within(value, from) {
				list[i] = flag + to + strings.TrimPrefix(value, path.Clean(from))
			}
		}
	}
	for _, v := range listAt(c, "env") {
		if value := textAt(v, "value"); within(value, from) {
			v["value"] = to + strings.TrimPrefix(value, path.Clean(from))
		}
	}
}

// forget removes the arguments and variables that name a file in a folder, and returns them.
func forget(c map[string]any, folder string) (removed []string) {
	list, _ := c["args"].([]any)
	var kept []any
	for _, arg := range list {
		flag, value := splitArgument(arg)
		if !within(value, folder) {
			kept = append(kept, arg)
			continue
		}
		removed = append(removed, flag+value)
		// The name of the flag may be an argument of its own.
		if last := len(kept) - 1; flag == "" && last >= 0 {
			if name, _ := kept[last].(string); strings.HasPrefix(name, "-") && !strings.Contains(name, "=") {
				removed[len(removed)-1] = name + " " + value
				kept = kept[:last]
			}
		}
	}
	if len(removed) > 0 {
		c["args"] = kept
	}
	for _, v := range listAt(c, "env") {
		if name := textAt(v, "name"); within(textAt(v, "value"), folder) {
			removeNamed(c, "env", name)
			removed = append(removed, name)
		}
	}
	return removed
}

// splitArgument splits --flag=value after the equals sign. Other arguments are only values.
func splitArgument(arg any) (flag, value string) {
	text, _ := arg.(string)
	name, value, found := strings.Cut(text, "=")
	if found && strings.HasPrefix(name, "-") {
		return name + "=", value
	}
	return "", text
}

// within reports whether a path is a folder or below it.
func within(file, folder string) bool {
	folder = path.Clean(folder)
	return file != "" && (path.Clean(file) == folder || strings.HasPrefix(file, folder+"/"))
}
