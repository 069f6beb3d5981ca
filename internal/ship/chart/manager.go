package chart

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// manager is the workload that runs the manager.
type manager struct {
	*template
	container map[string]any
	// account is the name of its ServiceAccount.
	account string
}

// findWorkload returns the workload that runs the manager: the one that starts its program, or the
// first with its image.
func findWorkload(objects []unstructured.Unstructured, o Options) (found *unstructured.Unstructured, err error) {
	for i := range objects {
		container := managerContainer(&objects[i], o.Image, o.Entrypoint)
		if container == nil {
			continue
		}
		if starts(container, o.Entrypoint) {
			return &objects[i], nil
		}
		if found == nil {
			found = &objects[i]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no workload runs the image %s", o.Image)
	}
	return found, nil
}

// managerContainer returns the container of a workload that starts a program from an image, or else
// the first with the image; nil if there is none.
func managerContainer(workload *unstructured.Unstructured, image, program string) (found map[string]any) {
	switch workload.GetKind() {
	case "Deployment", "StatefulSet", "DaemonSet":
	default:
		return nil
	}
	list, _, _ := unstructured.NestedFieldNoCopy(workload.Object, "spec", "template", "spec", "containers")
	containers, _ := list.([]any)
	for _, item := range containers {
		c, ok := item.(map[string]any)
		switch {
		case !ok || c["image"] != image:
		case starts(c, program):
			return c
		case found == nil:
			found = c
		}
	}
	return found
}

// starts reports whether a container starts a program; without a command, it starts the entrypoint.
func starts(container map[string]any, program string) bool {
	command, _ := container["command"].([]any)
	return len(command) == 0 || command[0] == program
}

// readManager finds the parts of the manager's workload.
func (b *builder) readManager() error {
	b.manager.container = managerContainer(b.manager.object, b.image, b.Entrypoint)
	_, spec := b.podTemplate()
	if b.manager.container == nil || spec == nil {
		return errors.New("the workload of the manager has no Pod template")
	}
	b.manager.account, _ = spec["serviceAccountName"].(string)
	return nil
}

// addManager makes values of what people usually change in a Deployment.
func (b *builder) addManager() error {
	pods, podSpec := b.podTemplate()
	b.addImage(podSpec)
	if spec := fields(b.manager.object.Object, "spec"); b.manager.object.GetKind() != "DaemonSet" {
		b.values.add("replicas", "The number of Pods of the manager.", number(spec["replicas"], 1), integerFrom(0))
		spec["replicas"] = b.value("$.Values.replicas")
	}
	b.take(b.manager.container, "resources", "The resources of the manager's container.", anyObject())
	b.more(b.manager.container, "args", "extraArgs", "Further arguments of the manager.", listOf(anyText()))
	b.more(b.manager.container, "env", "extraEnv", "Further environment variables of the manager.", listOf(anyObject()))
	meta := fields(pods, "metadata")
	b.more(meta, "labels", "podLabels", "Further labels of the manager's Pods.", objectOfTexts())
	b.more(meta, "annotations", "podAnnotations", "Further annotations of the manager's Pods.", objectOfTexts())
	b.take(podSpec, "nodeSelector", "The labels of the nodes on which the manager may run.", objectOfTexts())
	b.take(podSpec, "tolerations", "The taints of nodes that the manager tolerates.", listOf(anyObject()))
	b.take(podSpec, "affinity", "Rules for choosing the manager's nodes.", anyObject())
	b.take(podSpec, "topologySpreadConstraints", "Rules for spreading the manager's Pods over nodes.", listOf(anyObject()))
	b.addPriority(podSpec)
	for _, t := range b.find("", "ServiceAccount") {
		if t.object.GetName() == b.manager.account {
			b.more(fields(t.object.Object, "metadata"), "annotations", "serviceAccount.annotations",
				"Further annotations of the manager's ServiceAccount, such as a role of a cloud provider.", objectOfTexts())
		}
	}
	return nil
}

// addImage adds the values of the image.
func (b *builder) addImage(podSpec map[string]any) {
	repository, built := splitImage(b.Image)
	b.values.add("image.repository", "The name of the image without its tag.", repository, required())
	b.values.add("image.tag", "Another tag than the one for which this chart was made. If both tag and digest are empty, the image is "+repository+built+".", "", anyText())
	b.values.add("image.digest", "The digest of the image, such as sha256:4f1e...", "", matching("^(sha256:[0-9a-f]{64})?$"))
	policy, _ := b.manager.container["imagePullPolicy"].(string)
	b.values.add("image.pullPolicy", "Always, IfNotPresent or Never; if it is empty, Kubernetes decides.", policy, oneOf("", "Always", "IfNotPresent", "Never"))
	delete(b.manager.container, "imagePullPolicy")
	b.field(b.manager.container, "{{- with .Values.image.pullPolicy }}\nimagePullPolicy: {{ . }}\n{{- end }}\n")
	b.take(podSpec, "imagePullSecrets", "Secrets with the credentials of the image's registry, each as {name: NAME}.", listOf(anyObject()))
}

// splitImage separates the name of an image from its tag and digest, such as :v1@sha256:4f1e...
func splitImage(image string) (repository, version string) {
	rest, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndex(rest, ":"); i > strings.LastIndex(rest, "/") {
		rest = rest[:i]
	}
	return rest, strings.TrimPrefix(image, rest)
}

// podTemplate returns the Pod template of the manager and its spec.
func (b *builder) podTemplate() (pods, spec map[string]any) {
	pods = inner(inner(b.manager.object.Object, "spec"), "template")
	return pods, inner(pods, "spec")
}

// take makes a field a value, whose default is the content of the field.
func (b *builder) take(object map[string]any, name, comment string, schema rule) {
	value, ok := object[name]
	if !ok {
		value = schema.empty()
	}
	b.values.add(name, comment, value, schema)
	b.replace(object, name, name)
}

// more adds a value whose content is appended to a field.
func (b *builder) more(object map[string]any, name, path, comment string, schema rule) {
	b.values.add(path, comment, schema.empty(), schema)
	b.extend(object, name, path)
}

// fields returns an object in an object, and adds it if it is missing.
func fields(object map[string]any, name string) map[string]any {
	inner, ok := object[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		object[name] = inner
	}
	return inner
}

// inner returns an object in an object for reading; nil if it is missing.
func inner(object map[string]any, name string) map[string]any {
	found, _ := object[name].(map[string]any)
	return found
}

// number returns a number of an object, or another one if it is missing.
func number(value any, otherwise int64) any {
	if value == nil {
		return otherwise
	}
	return value
}
