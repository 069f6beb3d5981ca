package project

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// stdin is the path that means standard input.
const stdin = "-"

// installs reports whether the options name a complete installation, which replaces the
// manifests of the project.
func (o Options) installs() bool { return len(o.Manifests) > 0 || o.Helm != "" }

// ReadsStdin reports whether the options name standard input.
func (o Options) ReadsStdin() bool {
	return slices.Contains(slices.Concat(o.Manifests, o.Given, o.WithCRDs, []string{o.CRDs, o.RBAC, o.Webhooks}), stdin)
}

// named returns the objects of the complete installation that the options name.
func (p *Project) named() ([]document, error) {
	docs, err := p.readAll(flagManifests, p.options.Manifests)
	if err != nil || p.options.Helm == "" {
		return docs, err
	}
	rendered, err := p.render()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flagHelm, p.options.Helm, err)
	}
	return append(rendered, docs...), nil
}

// readAll returns the objects at the paths that a flag names.
func (p *Project) readAll(flag string, paths []string) ([]document, error) {
	var docs []document
	for _, path := range paths {
		more, err := p.read(path)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", flag, path, err)
		}
		if len(more) == 0 && path == stdin {
			return nil, fmt.Errorf("%s -: standard input contains no object; pipe the manifests into koboshi, and check the command that writes them", flag)
		}
		if len(more) == 0 {
			return nil, fmt.Errorf("%s %s contains no object; check the command that writes it", flag, path)
		}
		docs = append(docs, more...)
	}
	return docs, nil
}

// readStdin returns the objects on standard input, which can be read only once.
func (p *Project) readStdin() ([]document, error) {
	in := p.options.Stdin
	if in == nil {
		return nil, errors.New("standard input can be read only once, and by koboshi check only; name a file instead of -")
	}
	p.options.Stdin = nil
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return p.parse("standard input", data)
}

// additions returns docs together with the objects that the options add to every
// installation.
func (p *Project) additions(docs []document) ([]document, error) {
	crds, err := p.readAll(flagWithCRDs, p.options.WithCRDs)
	if err != nil {
		return nil, err
	}
	for _, d := range crds {
		if !isCRD(d) {
			p.note("left out %s of %s, because %s adds only CustomResourceDefinitions", d, d.File, flagWithCRDs)
		}
	}
	given, err := p.readAll(flagGiven, p.options.Given)
	if err != nil {
		return nil, err
	}
	crds = slices.DeleteFunc(crds, func(d document) bool { return !isCRD(d) })
	for i := range crds {
		crds[i].foreign = true
	}
	return slices.Concat(docs, crds, given), nil
}

// unique keeps the last of several objects with the same kind and name.
func unique(docs []document) []document {
	type key struct{ group, kind, namespace, name string }
	seen := map[key]bool{}
	var kept []document
	for _, d := range slices.Backward(docs) {
		o := d.Object
		k := key{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
		if k.name == "" || !seen[k] {
			kept = append(kept, d)
		}
		seen[k] = true
	}
	slices.Reverse(kept)
	return kept
}
