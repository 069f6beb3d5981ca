package project

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// manager is the Deployment that runs the project's controller.
type manager struct {
	workload  document
	template  corev1.PodTemplateSpec
	container corev1.Container

	args []string // with variables expanded
	env  []string // NAME=value
}

// pickManager finds the controller's Deployment among the workloads.
func (p *Project) pickManager(parts parts) *manager {
	found := parts.workloads
	if len(found) > 1 {
		found = slices.DeleteFunc(slices.Clone(found), func(d document) bool {
			label, _, _ := unstructured.NestedString(d.Object.Object, "spec", "template", "metadata", "labels", "control-plane")
			return label != "controller-manager"
		})
	}
	if len(found) != 1 {
		p.note("%s in config/manager or config/default, so the manager is started with default arguments (use %s and %s to add others, or %s to name a kustomization that has the Deployment)",
			map[bool]string{true: "there is no Deployment of the manager", false: "several Deployments could be the manager"}[len(parts.workloads) == 0], flagArgs, flagEnv, flagKustomization)
		return nil
	}
	for _, other := range parts.workloads {
		if other.Object.GetName() != found[0].Object.GetName() {
			p.note("left out %s, because only the manager is run", other)
		}
	}
	m := &manager{workload: found[0]}
	content, _, _ := unstructured.NestedMap(found[0].Object.Object, "spec", "template")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &m.template); err != nil || len(m.template.Spec.Containers) == 0 {
		p.note("%s in %s cannot be read, so the manager is started with default arguments (use %s to add others): %v", found[0], found[0].File, flagArgs, cmp.Or(errText(err), "it has no containers"))
		return nil
	}
	m.container = m.template.Spec.Containers[0]
	for _, c := range m.template.Spec.Containers {
		if c.Name == "manager" { // older projects also have kube-rbac-proxy
			m.container = c
		}
	}
	return m
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// resolve expands variables in the environment and the arguments as a kubelet does.
func (m *manager) resolve(p *Project, parts parts, id subject.ServiceAccount) {
	values := map[string]string{}
	set := func(name, value string) {
		values[name] = value
		m.env = slices.DeleteFunc(m.env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		m.env = append(m.env, name+"="+value)
	}
	for _, from := range m.container.EnvFrom {
		m.fromAll(p, parts, id, from, set)
	}
	for _, e := range m.container.Env {
		if e.ValueFrom == nil {
			set(e.Name, expand(e.Value, values))
		} else if value, ok := m.valueOf(parts, id, e.ValueFrom); ok {
			set(e.Name, value)
		} else if !optional(e.ValueFrom) {
			p.note("the value of the environment variable %s of %s is unknown (use %s to set it)", e.Name, m.workload, flagEnv)
		}
	}
	command := m.container.Command
	if len(command) > 0 && slices.Contains([]string{"sh", "bash", "ash", "dash"}, path.Base(command[0])) {
		p.note("%s starts the manager through a shell, so its arguments are unknown (use %s to add them)", m.workload, flagArgs)
		return
	}
	for _, arg := range append(slices.Clone(command[min(1, len(command)):]), m.container.Args...) {
		m.args = append(m.args, expand(arg, values))
	}
}

// fromAll sets the variables that an envFrom takes from a ConfigMap.
func (m *manager) fromAll(p *Project, parts parts, id subject.ServiceAccount, from corev1.EnvFromSource, set func(name, value string)) {
	if from.ConfigMapRef == nil {
		p.note("%s takes environment variables from a Secret, whose values are unknown (use %s to set them)", m.workload, flagEnv)
		return
	}
	found := parts.find("ConfigMap", id.Namespace, from.ConfigMapRef.Name)
	if found == nil {
		if from.ConfigMapRef.Optional == nil || !*from.ConfigMapRef.Optional {
			p.note("%s takes environment variables from the ConfigMap %s, which is not in config/ (use %s to set them)", m.workload, from.ConfigMapRef.Name, flagEnv)
		}
		return
	}
	data, _, _ := unstructured.NestedStringMap(found.Object.Object, "data")
	names := make([]string, 0, len(data))
	for name := range data {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		set(from.Prefix+name, data[name])
	}
}

// valueOf returns the value that a kubelet would use. It ignores Secrets, because their
// values would appear in the environment of a process and in findings.
func (m *manager) valueOf(parts parts, id subject.ServiceAccount, from *corev1.EnvVarSource) (string, bool) {
	if ref := from.ConfigMapKeyRef; ref != nil {
		found := parts.find("ConfigMap", id.Namespace, ref.Name)
		if found == nil {
			return "", false
		}
		value, ok, _ := unstructured.NestedString(found.Object.Object, "data", ref.Key)
		return value, ok
	}
	if from.FieldRef == nil {
		return "", false
	}
	switch field := from.FieldRef.FieldPath; field {
	case "metadata.name":
		return m.workload.Object.GetName() + "-0", true
	case "metadata.namespace":
		return id.Namespace, true
	case "spec.serviceAccountName":
		return id.Name, true
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return "127.0.0.1", true
	default:
		if key, ok := strings.CutPrefix(field, "metadata.labels['"); ok {
			value, ok := m.template.Labels[strings.TrimSuffix(key, "']")]
			return value, ok
		}
		if key, ok := strings.CutPrefix(field, "metadata.annotations['"); ok {
			value, ok := m.template.Annotations[strings.TrimSuffix(key, "']")]
			return value, ok
		}
	}
	return "", false
}

func optional(from *corev1.EnvVarSource) bool {
	yes := false
	if ref := from.ConfigMapKeyRef; ref != nil && ref.Optional != nil {
		yes = *ref.Optional
	}
	if ref := from.SecretKeyRef; ref != nil && ref.Optional != nil {
		yes = *ref.Optional
	}
	return yes
}

var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_.-][A-Za-z0-9_.-]*\)`)

// expand replaces $(NAME) with the value of the variable, and $$ with a dollar sign, as a
// kubelet does. It keeps unknown variables.
func expand(text string, values map[string]string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, ok := values[found[2:len(found)-1]]; ok {
			return value
		}
		return found
	})
}

// mounted reports whether a path is in a volume of the manager, and therefore does not
// exist outside a Pod.
func (m *manager) mounted(file string) bool {
	if !path.IsAbs(file) {
		file = path.Join(cmp.Or(m.container.WorkingDir, "/"), file)
	}
	return slices.ContainsFunc(m.container.VolumeMounts, func(v corev1.VolumeMount) bool {
		return v.MountPath != "" && (file == v.MountPath || strings.HasPrefix(file, strings.TrimSuffix(v.MountPath, "/")+"/"))
	})
}

// port returns the number of the container's first port whose name begins with the given
// name, or 0.
func (m *manager) port(name string) int {
	for _, port := range m.container.Ports {
		if strings.HasPrefix(port.Name, name) {
			return int(port.ContainerPort)
		}
	}
	return 0
}

// conversion reports whether one of the objects names a webhook behind a Service.
func conversion(objects []unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, subject.NamesService)
}
