// Package provenance says where an image comes from: the revision of its code, and how it was built.
//
//	git, go.mod ──Source──▶ Make ──▶ in-toto statement with SLSA's provenance, version 1
//
// The document describes a build on the machine of a person. Without a signature, it proves nothing:
// anyone who can push to the registry can write one.
package provenance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// MediaType is the media type of in-toto statements in JSON, as it is registered with IANA.
const MediaType = "application/vnd.in-toto+json"

// PredicateType names SLSA's provenance in statements.
const PredicateType = "https://slsa.dev/provenance/v1"

// buildType names the meaning of the parameters. SLSA wants a URL that explains it.
const buildType = "https://github.com/koboshi-dev/koboshi/blob/main/docs/guide/project/ship.md"

// Source is the code from which an image was built.
type Source struct {
	// Module is the path of the module.
	Module string
	// Revision is the commit of the repository; empty if there is none. Changed means that files of
	// the repository differ from the commit, or are not in it.
	Revision string
	Changed  bool
}

// Find asks git for the revision of a folder. Without git, or outside of a repository, there is none.
// The folder for the output is not part of the code.
func Find(ctx context.Context, dir, module, output string) Source {
	s := Source{Module: module}
	revision, err := git(ctx, dir, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return s
	}
	s.Revision = revision
	status := []string{"status", "--porcelain", "--", ":/"}
	changes, err := git(ctx, dir, append(status, ":(exclude)"+output)...)
	if err != nil { // the folder for the output is outside of the repository
		changes, err = git(ctx, dir, status...)
	}
	s.Changed = err != nil || changes != ""
	return s
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", slices.Concat([]string{"-C", dir}, args)...).Output()
	return string(bytes.TrimSpace(out)), err
}

// hosts are servers of repositories in which the first three parts of a module's path are its
// repository.
var hosts = []string{"github.com", "gitlab.com", "codeberg.org"}

// Repository returns the address of a module's repository, without a scheme, and false if the path of
// the module does not tell it.
func Repository(module string) (address string, ok bool) {
	parts := strings.SplitN(module, "/", 4)
	if len(parts) < 3 || !slices.Contains(hosts, parts[0]) {
		return module, false
	}
	return strings.Join(parts[:3], "/"), true
}

// Build describes how an image was built.
type Build struct {
	Source Source
	// Image is the name of the image without a tag, and Digest that of the index.
	Image, Digest string
	Platforms     []string
	// Programs maps the name of each program to its package.
	Programs map[string]string
	// Base is the image to which the programs were added; empty if there was none.
	Base string
	// Tool names this program and its version, and Go is the version of the compiler.
	Tool, Go string
}

type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string         `json:"buildType"`
		ExternalParameters   map[string]any `json:"externalParameters"`
		InternalParameters   map[string]any `json:"internalParameters"`
		ResolvedDependencies []resource     `json:"resolvedDependencies,omitempty"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID      string            `json:"id"`
			Version map[string]string `json:"version"`
		} `json:"builder"`
	} `json:"runDetails"`
}

type resource struct {
	Name        string            `json:"name,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"`
	Annotations map[string]any    `json:"annotations,omitempty"`
}

// Make returns the statement. It has no time, so that two builds of a commit have the same statement.
func Make(b Build) ([]byte, error) {
	algorithm, digest, ok := strings.Cut(b.Digest, ":")
	if !ok {
		return nil, fmt.Errorf("%q is no digest", b.Digest)
	}
	s := statement{
		Type: "https://in-toto.io/Statement/v1", PredicateType: PredicateType,
		Subject: []resource{{Name: b.Image, Digest: map[string]string{algorithm: digest}}},
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = buildType
	definition.ExternalParameters = map[string]any{"module": b.Source.Module, "platforms": b.Platforms, "programs": b.Programs}
	if b.Base != "" {
		definition.ExternalParameters["base"] = b.Base
	}
	definition.InternalParameters = map[string]any{"go": b.Go}
	if b.Source.Revision != "" {
		code := resource{Name: b.Source.Module, Digest: map[string]string{"gitCommit": b.Source.Revision}}
		if repository, ok := Repository(b.Source.Module); ok {
			code.URI = "git+https://" + repository
		}
		if b.Source.Changed {
			code.Annotations = map[string]any{"changed": true}
		}
		definition.ResolvedDependencies = []resource{code}
	}
	s.Predicate.RunDetails.Builder.ID = "https://github.com/koboshi-dev/koboshi"
	s.Predicate.RunDetails.Builder.Version = map[string]string{"koboshi": b.Tool}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(s)
	return text.Bytes(), err
}
