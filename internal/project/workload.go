package project

import (
	"cmp"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// manager is the workload that runs the project's controller.
type manager struct {
	workload  document
	template  corev1.PodTemplateSpec
	container corev1.Container

	args  []string // with variables expanded
	env   []string // NAME=value
	files []subject.Mount
	// certs are the paths of volumes with certificates, which the lab makes.
	certs []string
}

// resolver computes the values that a kubelet would give to the controller's container.
type resolver struct {
	p     *Project
	parts parts
	id    subject.ServiceAccount
	m     *manager
}

// resolve sets the arguments, the environment and the files of the manager as a kubelet
// does.
func (m *manager) resolve(p *Project, parts parts, id subject.ServiceAccount) error {
	r := &resolver{p: p, parts: parts, id: id, m: m}
	values, err := r.environment()
	if err != nil {
		return err
	}
	if err := r.volumes(); err != nil {
		return err
	}
	command := m.container.Command
	if len(command) > 0 && slices.Contains([]string{"sh", "bash", "ash", "dash"}, path.Base(command[0])) {
		p.note("%s starts the manager through a shell, so its arguments are unknown (use %s to add them)", m.workload, flagArgs)
		return nil
	}
	for _, arg := range slices.Concat(command[min(1, len(command)):], m.container.Args) {
		if arg, err = p.need(m.workload, arg); err != nil {
			return err
		}
		m.args = append(m.args, expand(arg, values))
	}
	return nil
}

// environment sets the environment of the manager and returns it as a map.
func (r *resolver) environment() (map[string]string, error) {
	m, values := r.m, map[string]string{}
	set := func(name, value string) {
		values[name] = value
		m.env = slices.DeleteFunc(m.env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		m.env = append(m.env, name+"="+value)
	}
	for _, from := range m.container.EnvFrom {
		r.setAll(from, set)
	}
	for _, e := range m.container.Env {
		if e.ValueFrom == nil {
			value, err := r.p.need(m.workload, e.Value)
			if err != nil {
				return nil, err
			}
			set(e.Name, expand(value, values))
			continue
		}
		if value, ok := r.valueOf(e.Name, e.ValueFrom); ok {
			set(e.Name, value)
		}
	}
	return values, nil
}

// setAll sets the variables that an envFrom takes from a ConfigMap or a Secret.
func (r *resolver) setAll(from corev1.EnvFromSource, set func(name, value string)) {
	var kind, name string
	var optional *bool
	switch {
	case from.ConfigMapRef != nil:
		kind, name, optional = "ConfigMap", from.ConfigMapRef.Name, from.ConfigMapRef.Optional
	case from.SecretRef != nil:
		kind, name, optional = "Secret", from.SecretRef.Name, from.SecretRef.Optional
	default:
		return
	}
	data, found := r.data(kind, name)
	if !found {
		if optional == nil || !*optional {
			r.p.note("%s takes environment variables from the %s %s, which is not in the installation (%s)", r.m.workload, kind, name, r.supply(kind, name))
		}
		return
	}
	for _, key := range sorted(data) {
		set(from.Prefix+key, string(data[key]))
	}
}

// valueOf returns the value of a variable, or false and a note if it is unknown.
func (r *resolver) valueOf(name string, from *corev1.EnvVarSource) (string, bool) {
	switch {
	case from.FieldRef != nil:
		if value, ok := r.field(from.FieldRef.FieldPath); ok {
			return value, true
		}
		r.p.note("the environment variable %s of %s is the field %s, which has no value in a check (use %s to set it)", name, r.m.workload, from.FieldRef.FieldPath, flagEnv)
	case from.ResourceFieldRef != nil:
		if value, ok := r.resource(from.ResourceFieldRef); ok {
			return value, true
		}
		r.p.note("the environment variable %s of %s is %s, which has no value in a check (use %s to set it)", name, r.m.workload, from.ResourceFieldRef.Resource, flagEnv)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return r.key(name, "ConfigMap", ref.Name, ref.Key, ref.Optional)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return r.key(name, "Secret", ref.Name, ref.Key, ref.Optional)
	}
	return "", false
}

// key returns the value of a key of a ConfigMap or Secret.
func (r *resolver) key(variable, kind, name, key string, optional *bool) (string, bool) {
	data, _ := r.data(kind, name)
	if value, ok := data[key]; ok {
		return string(value), true
	}
	_, given := r.p.variable(variable)
	if !given && (optional == nil || !*optional) {
		r.p.note("the environment variable %s of %s is the key %s of the %s %s, which is not in the installation (%s, or %s to set the variable)",
			variable, r.m.workload, key, kind, name, r.supply(kind, name), flagEnv)
	}
	return "", false
}

// supply names the flags that add a ConfigMap or Secret to the installation.
func (r *resolver) supply(kind, name string) string {
	flag := map[string]string{"ConfigMap": flagStubConfigMap, "Secret": flagStubSecret}[kind]
	return "use " + flagGiven + " FILE to add it, or " + flag + " " + r.id.Namespace + "/" + name + " to create one with made-up values"
}

// data returns the contents of a ConfigMap or Secret of the installation.
func (r *resolver) data(kind, name string) (map[string][]byte, bool) {
	found := r.parts.find(kind, r.id.Namespace, name)
	if found == nil {
		return nil, false
	}
	return dataOf(*found), true
}

// mounted reports whether a path is in a volume of the manager, and therefore does not
// exist outside a Pod.
func (m *manager) mounted(file string) bool {
	file = m.absolute(file)
	return slices.ContainsFunc(m.container.VolumeMounts, func(v corev1.VolumeMount) bool { return within(file, v.MountPath) })
}

// absolute returns the absolute path of a file in the container.
func (m *manager) absolute(file string) string {
	if !path.IsAbs(file) {
		file = path.Join(cmp.Or(m.container.WorkingDir, "/"), file)
	}
	return file
}

// within reports whether a path is the folder or is inside it.
func within(file, folder string) bool {
	return folder != "" && (file == folder || strings.HasPrefix(file, strings.TrimSuffix(folder, "/")+"/"))
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
