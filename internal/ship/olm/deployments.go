package olm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// watched is the variable by which operators of operator-sdk learn which namespaces to watch. OLM
// writes the namespaces of the OperatorGroup into an annotation of the Pods.
const watched = "WATCH_NAMESPACE"

// strategy returns the Deployments and permissions, which OLM installs.
func (m *maker) strategy() map[string]any {
	var deployments []any
	for _, d := range m.deployments {
		m.leaveOutCertificates(d, m.serves(d.GetName()))
		for _, v := range m.watchedVariables() {
			delete(v, "value")
			v["valueFrom"] = map[string]any{"fieldRef": map[string]any{"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
		}
		content := map[string]any{"name": d.GetName(), "spec": d.Object["spec"]}
		if labels := d.GetLabels(); len(labels) > 0 {
			content["label"] = labels
		}
		if len(d.GetAnnotations()) > 0 {
			m.note("OLM makes %s without its annotations", title(d))
		}
		deployments = append(deployments, content)
	}
	spec := map[string]any{"deployments": deployments}
	for field, permissions := range map[string]map[string][]any{"permissions": m.permissions, "clusterPermissions": m.clusterPermissions} {
		if len(permissions) > 0 {
			spec[field] = permissionList(permissions)
		}
	}
	return map[string]any{"strategy": "deployment", "spec": spec}
}

// watchedVariables returns the variables of all containers that say which namespaces to watch.
func (m *maker) watchedVariables() (all []map[string]any) {
	for _, c := range m.containers() {
		for _, v := range listAt(c, "env") {
			if textAt(v, "name") == watched {
				all = append(all, v)
			}
		}
	}
	return all
}

// containers returns the containers of all Deployments.
func (m *maker) containers() (all []map[string]any) {
	for _, d := range m.deployments {
		pod := mapAt(d.Object, "spec", "template", "spec")
		all = slices.Concat(all, listAt(pod, "containers"), listAt(pod, "initContainers"))
	}
	return all
}

// Install modes are the sets of namespaces that an operator can watch.
const (
	ownNamespace    = "OwnNamespace"
	singleNamespace = "SingleNamespace"
	multiNamespace  = "MultiNamespace"
	allNamespaces   = "AllNamespaces"
)

// modes returns the install modes: those of the base, or else those that the manager is likely to
// support. Without the variable, a manager cannot learn from OLM which namespaces to watch, so it
// watches all. Whether it accepts a list of namespaces cannot be seen.
func (m *maker) modes() []map[string]any {
	if modes := listAt(m.Base, "spec", "installModes"); len(modes) > 0 {
		return modes
	}
	some := len(m.watchedVariables()) > 0 && !m.converts()
	var all []map[string]any
	for _, mode := range []string{ownNamespace, singleNamespace, multiNamespace, allNamespaces} {
		supported := mode == allNamespaces || some && mode != multiNamespace
		all = append(all, map[string]any{"type": mode, "supported": supported})
	}
	return all
}

func (m *maker) converts() bool {
	return slices.ContainsFunc(m.webhooks, func(w map[string]any) bool { return w["conversionCRDs"] != nil })
}

// checkModes refuses install modes that OLM does not allow for operators that convert objects: a CRD
// has only one conversion in the whole cluster.
func (m *maker) checkModes() error {
	for _, mode := range m.modes() {
		all := textAt(mode, "type") == allNamespaces
		if supported, _ := mode["supported"].(bool); m.converts() && supported != all {
			return errors.New("the base of the ClusterServiceVersion supports other install modes than AllNamespaces, which OLM refuses for an operator that converts between versions; correct spec.installModes in config/manifests/bases")
		}
	}
	return nil
}

// relatedImages lists the images of all containers, and those in variables that begin with
// RELATED_IMAGE_, which tools read that copy an operator to another registry.
func (m *maker) relatedImages() []any {
	var all []map[string]any
	add := func(name, image string) {
		if slices.ContainsFunc(all, func(known map[string]any) bool { return known["image"] == image }) {
			return
		}
		unique := name
		for i := 2; slices.ContainsFunc(all, func(known map[string]any) bool { return known["name"] == unique }); i++ {
			unique = fmt.Sprintf("%s-%d", name, i)
		}
		all = append(all, map[string]any{"name": unique, "image": image})
		if !strings.Contains(image, "@sha256:") {
			m.note("the bundle names the image %s without a digest, so it may be another one tomorrow, and tools for clusters without internet access may refuse it", image)
		}
	}
	for _, c := range m.containers() {
		add(textAt(c, "name"), textAt(c, "image"))
	}
	for _, c := range m.containers() {
		for _, v := range listAt(c, "env") {
			if name, ok := strings.CutPrefix(textAt(v, "name"), "RELATED_IMAGE_"); ok && textAt(v, "value") != "" {
				add(strings.ReplaceAll(strings.ToLower(name), "_", "-"), textAt(v, "value"))
			}
		}
	}
	for _, known := range listAt(m.Base, "spec", "relatedImages") {
		add(textAt(known, "name"), textAt(known, "image"))
	}
	return anyList(all)
}

func anyList[T any](list []T) []any {
	var all []any
	for _, item := range list {
		all = append(all, item)
	}
	return all
}
