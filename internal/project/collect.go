package project

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// objects returns all objects of the project. Objects from files that the options name
// replace the project's other objects of the same kinds.
func (p *Project) objects(ctx context.Context) ([]document, error) {
	docs, err := p.configured()
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of %s: %w", p.Name, err)
	}
	for _, override := range []struct {
		path, flag string
		kinds      func(document) bool
	}{
		{p.options.CRDs, flagCRDs, isCRD},
		{p.options.RBAC, flagRBAC, isRBAC},
		{p.options.Webhooks, flagWebhooks, isWebhook},
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
			return nil, fmt.Errorf("%s %s contains no object of a kind that this flag accepts", override.flag, override.path)
		}
		docs = append(slices.DeleteFunc(docs, override.kinds), named...)
	}
	return docs, nil
}

// configured returns the objects in config/.
func (p *Project) configured() ([]document, error) {
	if p.options.Kustomization != "" {
		at := p.path(p.options.Kustomization)
		if !isKustomization(at) {
			return nil, fmt.Errorf("%s %s contains no kustomization.yaml", flagKustomization, p.options.Kustomization)
		}
		return p.kustomize(at)
	}
	whole := filepath.Join(p.Dir, "config", "default")
	if !isKustomization(whole) {
		p.note("there is no config/default, so config/crd, config/rbac, config/webhook and config/manager are used as they are (use %s to name a kustomization)", flagKustomization)
		return p.apart()
	}
	docs, err := p.kustomize(whole)
	if err == nil || errors.Is(err, errRemote) {
		return docs, err
	}
	docs, apartErr := p.apart()
	if apartErr != nil {
		// This error names the document that is at fault.
		return nil, apartErr
	}
	p.note("config/default cannot be built, so config/crd, config/rbac, config/webhook and config/manager are used as they are (use %s to name another kustomization): %v", flagKustomization, err)
	return docs, nil
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

// part reads a folder. If the folder has a kustomization that cannot be built, this
// function reads each file that the kustomization lists.
func (p *Project) part(dir, bases string) ([]document, error) {
	if !exists(dir) {
		return nil, nil
	}
	if !isKustomization(dir) {
		if inner := filepath.Join(dir, bases); exists(inner) {
			dir = inner
		}
		return p.readFolder(dir)
	}
	docs, err := p.kustomize(dir)
	if err == nil {
		return docs, nil
	}
	// Files that the kustomization does not list are patches and settings for kustomize,
	// not objects.
	files, listErr := p.listed(dir)
	if listErr != nil || len(files) == 0 {
		return nil, err
	}
	for _, file := range files {
		more, err := p.readFile(file)
		if err != nil {
			return nil, err
		}
		docs = append(docs, more...)
	}
	return docs, nil
}
