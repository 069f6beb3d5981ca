package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/manifest"
	"github.com/koboshi-dev/koboshi/internal/manifest/committed"
	"github.com/koboshi-dev/koboshi/internal/manifest/compat"
	"github.com/koboshi-dev/koboshi/internal/memory"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// defaultCRDs is the folder into which kubebuilder's Makefile generates CRDs.
const defaultCRDs = "config/crd/bases"

// comparison is the result of koboshi generate --check --against.
type comparison struct {
	// Revision is the revision of git, as the user named it.
	Revision string `json:"revision"`
	// Nothing is the reason why there was nothing to compare, or empty.
	Nothing string `json:"nothing,omitempty"`

	*compat.Report
}

// compareWith compares the generated CRDs with those of a revision.
func compareWith(ctx context.Context, name string, result *manifest.Result, stdio Stdio) (*comparison, error) {
	revision, err := committed.Open(ctx, result.Dir, name)
	var wrong *committed.RefError
	if errors.As(err, &wrong) {
		return nil, usageError{wrong}
	}
	if err != nil {
		return nil, err
	}
	in, notes, err := inputOf(ctx, revision, result)
	if err != nil {
		return nil, fmt.Errorf("comparing with %s: %w", name, err)
	}
	c := &comparison{Revision: name, Report: &compat.Report{Findings: []compat.Finding{}, Unchecked: []string{}}}
	if len(in.Old) == 0 {
		c.Nothing = fmt.Sprintf("%s has no CRDs in the folders into which CRDs are generated", name)
		return c, nil
	}
	if c.Report, err = tryObjects(ctx, in, stdio); err != nil {
		return nil, fmt.Errorf("comparing with %s: %w", name, err)
	}
	c.Unchecked = append(c.Unchecked, notes...)
	return c, nil
}

// inputOf collects the old and the new CRDs, and the old samples.
func inputOf(ctx context.Context, revision *committed.Revision, result *manifest.Result) (in compat.Input, notes []string, err error) {
	folders := []string{defaultCRDs}
	for _, file := range result.Files {
		if path.Ext(file.Path) != ".yaml" {
			continue
		}
		data, err := result.Content(file)
		if err != nil {
			return in, nil, err
		}
		found, err := committed.ParseCRDs(file.Path, data)
		if err != nil {
			return in, nil, err
		}
		in.New = append(in.New, found...)
		if folder := path.Dir(file.Path); len(found) > 0 && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	if in.Old, err = revision.CRDs(ctx, folders); err != nil {
		return in, nil, err
	}
	in.Webhooks = map[string]bool{}
	now, err := projectfile.Read(result.Dir)
	if err != nil {
		now = nil // without PROJECT, only CRDs name webhooks
	}
	for _, project := range []*projectfile.File{revision.Project(ctx), now} {
		addConverted(in, project)
	}
	in.Samples, notes, err = revision.Samples(ctx)
	return in, notes, err
}

// addConverted adds the CRDs for which a project has a conversion webhook. The webhook is not
// in the generated CRDs, because kustomize adds it.
func addConverted(in compat.Input, project *projectfile.File) {
	if project == nil {
		return
	}
	for _, resource := range project.Resources {
		for _, d := range in.Old {
			same := d.CRD.Spec.Names.Kind == resource.Kind && d.CRD.Spec.Group == resource.QualifiedGroup()
			if same && resource.Webhooks != nil && resource.Webhooks.Conversion {
				in.Webhooks[d.CRD.Name] = true
			}
		}
	}
}

// tryObjects starts a plane only if there is something to try in it.
func tryObjects(ctx context.Context, in compat.Input, stdio Stdio) (report *compat.Report, err error) {
	if !in.NeedsServer() {
		return compat.Check(ctx, nil, in)
	}
	memory.Starting()
	plane, err := controlplane.Start(ctx, controlplane.Options{LastWords: stdio.Err})
	if err != nil {
		return nil, fmt.Errorf("starting a plane: %w", err)
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		return nil, err
	}
	return compat.Check(ctx, config, in)
}

// verdict returns the error with which the command ends.
func (c *comparison) verdict() error {
	if c == nil || c.Breaking() == 0 {
		return nil
	}
	return fmt.Errorf("%s users of %s; keep the old behavior, or make the change in a new version of the API", breaks(c.Breaking()), c.Revision)
}

func breaks(n int) string {
	if n == 1 {
		return "1 change breaks"
	}
	return fmt.Sprintf("%d changes break", n)
}

// write writes the findings, what was not checked, and one line with the result.
func (c *comparison) write(w io.Writer) error {
	if c == nil {
		return nil
	}
	var out strings.Builder
	for _, f := range c.Findings {
		writeFinding(&out, f)
	}
	for _, note := range c.Unchecked {
		_, _ = fmt.Fprintln(&out, wrapped("", "  ", "not checked: "+note))
	}
	switch {
	case c.Nothing != "":
		_, _ = fmt.Fprintf(&out, "nothing to compare: %s\n", c.Nothing)
	default:
		_, _ = fmt.Fprintf(&out, "against %s: %d breaking, %s; %s changed, %s tried\n",
			c.Revision, c.Breaking(), noun.Count(len(c.Findings)-c.Breaking(), "warning"), noun.Count(c.CRDs, "CRD"), noun.Count(c.Objects, "object"))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// writeFinding writes a finding in lines of at most 80 columns, as far as words allow.
func writeFinding(out *strings.Builder, f compat.Finding) {
	where := strings.TrimSpace(f.Version + " " + f.Field)
	_, _ = fmt.Fprintf(out, "%s: %s\n", f.File, strings.TrimSpace(f.CRD+" "+where))
	_, _ = fmt.Fprintln(out, wrapped("  ", "    ", fmt.Sprintf("%s: %s (%s)", f.Severity, f.Message, f.Rule)))
	for i, effect := range f.Effects {
		_, _ = fmt.Fprintln(out, wrapped("  ", "    ", effect.Action+" "+effect.Message))
		if i == 0 && effect.Object != nil {
			_, _ = fmt.Fprintln(out, wrapped("  ", "    ", "object ("+effect.Origin+"): "+effect.Text()))
		}
	}
	if f.StoredUsable {
		_, _ = fmt.Fprintln(out, wrapped("  ", "    ", "stored objects can still be read, and updated without changing the field"))
	}
	if f.Instead != "" {
		_, _ = fmt.Fprintln(out, wrapped("  ", "    ", "instead: "+f.Instead))
	}
}

// wrapped breaks a text between words.
func wrapped(first, other, text string) string {
	const columns = 80
	var out strings.Builder
	line := first
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case len(line)+1+len(word) > columns:
			_, _ = fmt.Fprintln(&out, line)
			line = other + word
		default:
			line += " " + word
		}
	}
	return out.String() + line
}
