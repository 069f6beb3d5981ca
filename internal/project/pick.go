package project

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// pickManager finds the workload that runs the controller. It returns nil if there is none, and an
// error if several workloads could run the controller.
func (p *Project) pickManager(parts parts) (*manager, error) {
	found, err := p.candidates(parts)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("several workloads could run the controller: %s; choose one with %s", list(found), flagDeployment)
	}
	for _, other := range parts.workloads {
		if other.String() != found[0].String() {
			p.note("left out %s, because only the controller is run (%s chooses another workload)", other, flagDeployment)
		}
	}
	m := &manager{workload: found[0], template: templateOf(found[0])}
	if len(m.template.Spec.Containers) == 0 {
		return nil, found[0].errorf("it has no container that can be read; fix spec.template.spec.containers")
	}
	m.container = mainContainer(m.template.Spec.Containers)
	return m, nil
}

// candidates returns the workloads that could run the controller. Each rule applies only while
// several candidates remain, and only if at least one of them matches the rule.
func (p *Project) candidates(parts parts) ([]document, error) {
	found := parts.workloads
	if name := p.options.Deployment; name != "" {
		found = slices.DeleteFunc(slices.Clone(found), func(d document) bool { return !d.named(name) })
		if len(found) == 0 {
			return nil, fmt.Errorf("%s %s names no Deployment, StatefulSet or DaemonSet of the installation, which has: %s; name one of these, or name the manifests that contain it with %s", flagDeployment, name, cmp.Or(list(parts.workloads), "none"), flagManifests)
		}
		return found, nil
	}
	if len(found) == 0 {
		p.note("there is no Deployment of the manager in the installation, so the manager is started with default arguments (use %s and %s to add others, or %s to name a kustomization that has the Deployment)", flagArgs, flagEnv, flagKustomization)
		return nil, nil
	}
	bound := bindings(parts)
	for _, rule := range []func(document) bool{
		func(d document) bool { return runs(d, p.programName()) },
		isLabelled,
		electsLeader,
		func(d document) bool {
			return slices.ContainsFunc(bound, func(b binding) bool { return b.binds(accountOf(d)) })
		},
		looksLikeController,
		p.hasNameOfMain,
		func(d document) bool { return beginsAll(d.Object.GetName(), found) },
	} {
		if len(found) == 1 {
			break
		}
		if kept := slices.DeleteFunc(slices.Clone(found), func(d document) bool { return !rule(d) }); len(kept) > 0 {
			found = kept
		}
	}
	return found, nil
}

// programName returns the name of the program that is checked, if it is a name that a workload
// could use, or "".
func (p *Project) programName() string {
	name := path.Base(filepath.ToSlash(p.Main))
	if len(p.options.Command) > 0 {
		name = filepath.Base(p.options.Command[0])
	}
	if slices.Contains([]string{"", ".", "/", "cmd", "manager", "operator", "controller", "sh", "bash"}, name) {
		return ""
	}
	return name
}

// runs reports whether a container of a workload starts the program, by its command or by the
// name of its image.
func runs(d document, program string) bool {
	return program != "" && slices.ContainsFunc(templateOf(d).Spec.Containers, func(c corev1.Container) bool {
		return imageName(c) == program || len(c.Command) > 0 && path.Base(c.Command[0]) == program
	})
}

// imageName returns the last part of the name of a container's image, without its tag and
// its digest.
func imageName(c corev1.Container) string {
	name, _, _ := strings.Cut(path.Base(c.Image), "@")
	name, _, _ = strings.Cut(name, ":")
	return name
}

// chooseMain sets Main if the project has several programs. It chooses the program that the
// workload of the controller starts.
func (p *Project) chooseMain() error {
	if len(p.mains) == 0 {
		return nil
	}
	for _, dir := range p.mains {
		if p.manager != nil && runs(p.manager.workload, path.Base(filepath.ToSlash(dir))) {
			p.Main = dir
			return nil
		}
	}
	return fmt.Errorf("several programs could be the manager: %s; choose one with %s", strings.Join(p.mains, ", "), flagMain)
}

// named reports whether NAME or NAMESPACE/NAME is the name of the object.
func (d document) named(name string) bool {
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		return d.Object.GetName() == name && namespaceOf(d.Object) == namespace
	}
	return d.Object.GetName() == name
}

// isLabelled reports whether a workload has the label that kubebuilder gives to managers.
func isLabelled(d document) bool {
	return cmp.Or(templateOf(d).Labels["control-plane"], d.Object.GetLabels()["control-plane"]) == "controller-manager"
}

// electsLeader reports whether an argument of a workload is about leader election.
func electsLeader(d document) bool {
	return slices.ContainsFunc(templateOf(d).Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool {
			return strings.Contains(arg, "leader-elect") || strings.Contains(arg, "leaderElect")
		})
	})
}

func looksLikeController(d document) bool {
	return slices.ContainsFunc(templateOf(d).Spec.Containers, func(c corev1.Container) bool {
		image := imageName(c)
		return c.Name == "manager" || slices.ContainsFunc([]string{"operator", "controller", "manager"}, func(word string) bool { return strings.Contains(image, word) })
	})
}

// beginsAll reports whether the names of all workloads begin with the name, as with ship and
// ship-webhook.
func beginsAll(name string, workloads []document) bool {
	return !slices.ContainsFunc(workloads, func(d document) bool {
		other := d.Object.GetName()
		return other != name && !strings.HasPrefix(other, name+"-")
	})
}

// hasNameOfMain reports whether an image of a workload has the name of the folder of the main
// package, as in cmd/controller and ship-controller.
func (p *Project) hasNameOfMain(d document) bool {
	if p.Main == "" || p.Main == "." {
		return false
	}
	name := filepath.Base(p.Main)
	return slices.ContainsFunc(templateOf(d).Spec.Containers, func(c corev1.Container) bool {
		image := imageName(c)
		return image == name || strings.HasSuffix(image, "-"+name)
	})
}

// templateOf returns the Pod template of a workload. Parts that cannot be read are empty.
func templateOf(d document) corev1.PodTemplateSpec {
	var workload struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object.Object, &workload)
	return workload.Spec.Template
}

// mainContainer returns the container of the manager. Other containers, such as kube-rbac-proxy of
// older projects, may come before it in the list.
func mainContainer(containers []corev1.Container) corev1.Container {
	for _, c := range containers {
		if c.Name == "manager" {
			return c
		}
	}
	for _, c := range containers {
		if !strings.Contains(c.Name, "proxy") && !strings.Contains(path.Base(c.Image), "rbac-proxy") {
			return c
		}
	}
	return containers[0]
}

func accountOf(d document) subject.ServiceAccount {
	spec := templateOf(d).Spec
	return subject.ServiceAccount{
		Namespace: namespaceOf(d.Object), Name: cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default"),
	}
}

func list(docs []document) string {
	var names []string
	for _, d := range docs {
		names = append(names, d.String())
	}
	return strings.Join(names, ", ")
}
