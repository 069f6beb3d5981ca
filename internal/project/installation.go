package project

import (
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Installation returns the objects that install the project in a cluster, exactly as its
// kustomization has them. Unlike Subject.Install, they include what a check replaces or leaves
// out, such as the manager's Deployment and its certificates. The notes are only about the
// installation.
func (p *Project) Installation() (objects []unstructured.Unstructured, notes []string, err error) {
	again := *p
	again.Notes = nil
	docs, err := again.installation()
	if err != nil {
		return nil, nil, err
	}
	for _, d := range unique(docs) {
		objects = append(objects, d.Object)
	}
	return objects, again.Notes, nil
}

// Container returns the container in which the manager runs in a cluster, and false if the
// installation has no workload that runs it.
func (p *Project) Container() (corev1.Container, bool) {
	if p.manager == nil {
		return corev1.Container{}, false
	}
	return p.manager.container, true
}

// MainNamed returns the main package below cmd/ whose folder has the given name, as MainModule does,
// and false if there is none.
func (p *Project) MainNamed(name string) (dir, folder string, ok bool) {
	for _, at := range p.foldersOf("cmd") {
		if program, _ := mainPackage(at); program && filepath.Base(at) == name {
			dir, folder = p.moduleOf(p.rel(at))
			return dir, folder, true
		}
	}
	return "", "", false
}
