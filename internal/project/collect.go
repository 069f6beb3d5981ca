package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// objects returns all objects of the installation. Objects from files that the options name
// for some kinds replace the other objects of these kinds.
func (p *Project) objects(ctx context.Context) ([]document, error) {
	docs, err := p.installation()
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of %s: %w", p.Name, err)
	}
	for _, override := range []struct {
		path, flag string
		kinds      func(document) bool
		what       string
	}{
		{p.options.CRDs, flagCRDs, isCRD, "CustomResourceDefinition"},
		{p.options.RBAC, flagRBAC, isRBAC, "service account, role or binding"},
		{p.options.Webhooks, flagWebhooks, isWebhook, "webhook configuration"},
	} {
		if override.path == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		named, err := p.read(override.path)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", override.flag, override.path, err)
		}
		if !slices.ContainsFunc(named, override.kinds) {
			return nil, fmt.Errorf("%s %s contains no %s; name the file or folder that contains them, or omit the flag", override.flag, override.path, override.what)
		}
		docs = append(slices.DeleteFunc(docs, override.kinds), named...)
	}
	if docs, err = p.additions(docs); err != nil {
		return nil, err
	}
	if docs, err = p.modernize(unique(docs)); err != nil {
		return nil, err
	}
	return p.substitute(docs)
}

// installation returns the objects of the first of these that exists: the installation that
// the options name, the kustomization that they name, config/, and the folder deploy/ of old
// layouts.
func (p *Project) installation() ([]document, error) {
	switch {
	case p.options.installs():
		return p.named()
	case p.options.Kustomization != "":
		at := p.path(p.options.Kustomization)
		if !isKustomization(at) {
			return nil, fmt.Errorf("%s %s contains no kustomization.yaml; name a folder that has one, or name files and folders of YAML with %s", flagKustomization, p.options.Kustomization, flagManifests)
		}
		return p.build(at)
	case p.apartFromProject:
		return nil, nil
	}
	if whole := filepath.Join(p.Dir, "config", "default"); isKustomization(whole) {
		return p.build(whole)
	}
	docs, err := p.apart()
	if err == nil && len(docs) > 0 {
		p.note("there is no config/default, so config/crd, config/rbac, config/webhook and config/manager are used as they are (use %s to name a kustomization, or %s to name all manifests%s)", flagKustomization, flagManifests, p.installationHint())
	}
	if err == nil && len(docs) == 0 {
		docs, err = p.deployFolder()
	}
	if err == nil && len(docs) == 0 {
		p.note("there are no manifests in config/ or deploy/ (use %s to name them%s)", flagManifests, p.installationHint())
	}
	return docs, err
}

// build builds a kustomization. Its error ends with the next action.
func (p *Project) build(dir string) ([]document, error) {
	docs, err := p.kustomize(dir)
	if err != nil && !errors.Is(err, errRemote) {
		err = incomplete(err)
	}
	return docs, err
}

// incomplete adds the next action to the error of a kustomization. The error is not worked
// around, because a controller with half of its permissions would be blamed for the missing
// half.
func incomplete(err error) error {
	return fmt.Errorf("%w; fix the kustomization, name another one with %s, or name the rendered manifests with %s", err, flagKustomization, flagManifests)
}

// apart reads the folders of config/ one by one.
func (p *Project) apart() ([]document, error) {
	var docs []document
	for _, part := range []struct {
		folder string
		bases  string
		only   func(document) bool
	}{
		{"crd", "bases", isCRD},
		{"rbac", "", func(document) bool { return true }},
		{"webhook", "", isWebhook},
		{"manager", "", func(document) bool { return true }},
	} {
		more, err := p.part(filepath.Join(p.Dir, "config", part.folder), part.bases)
		if err != nil {
			return nil, err
		}
		for _, doc := range more {
			if part.only(doc) {
				docs = append(docs, doc)
			}
		}
	}
	return docs, nil
}

// part reads a folder or builds its kustomization.
func (p *Project) part(dir, bases string) ([]document, error) {
	if !exists(dir) {
		return nil, nil
	}
	if isKustomization(dir) {
		return p.build(dir)
	}
	if inner := filepath.Join(dir, bases); exists(inner) {
		dir = inner
	}
	return p.readFolder(dir)
}

// deployFolder reads the layout that operator-sdk used before it adopted kubebuilder's: the
// manifests are the files in deploy/, and deploy/crds has the CRDs and their samples.
func (p *Project) deployFolder() ([]document, error) {
	dir := filepath.Join(p.Dir, "deploy")
	if isKustomization(dir) {
		return p.build(dir)
	}
	docs, err := p.readFiles(dir)
	if err != nil {
		return nil, err
	}
	crds, err := p.readFiles(filepath.Join(dir, "crds"))
	if err != nil {
		return nil, err
	}
	return append(docs, slices.DeleteFunc(crds, func(d document) bool { return !isCRD(d) })...), nil
}
