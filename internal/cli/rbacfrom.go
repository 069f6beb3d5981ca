package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/manifest"
	"github.com/koboshi-dev/koboshi/internal/manifest/permissions"
)

// maxRounds limits how often the scenarios are run. Each further round is needed because the
// controller got further than before, and was refused another permission.
const maxRounds = 6

// A markerPatch is the result of koboshi generate --rbac-from.
type markerPatch struct {
	Report  string         `json:"report"`
	Changes []markerChange `json:"changes"`
	// Left lists the permissions that no marker grants, and requests whose permission is not
	// known. They need a person.
	Left []string `json:"left"`
	// Rounds is the number of times that the scenarios were run with new markers.
	Rounds int `json:"rounds"`

	check bool
}

type markerChange struct {
	File string   `json:"file"`
	Line int      `json:"line"`
	Old  string   `json:"old,omitempty"`
	New  []string `json:"new,omitempty"`
}

// markerEditor edits the markers of a project.
type markerEditor struct {
	flags   *generateFlags
	stdio   Stdio
	report  *report.Report
	project string // the project's folder
	roles   []manifest.Role
	files   []*permissions.Files // of each role
	patch   *markerPatch
	before  map[string][]byte // the files that have been written, as they were
}

// patchMarkers edits the markers as the report demands. Without --rbac-from, it does nothing.
func (f *generateFlags) patchMarkers(ctx context.Context, stdio Stdio) (*markerPatch, error) {
	if f.rbacFrom == "" {
		return nil, nil
	}
	r, err := report.ReadFile(f.rbacFrom)
	if err != nil {
		return nil, usageError{err}
	}
	if len(r.Args) == 0 && strings.TrimSpace(r.Command) != "koboshi check" {
		return nil, usageError{fmt.Errorf("%s was written by an earlier version, without the arguments of the check; run koboshi check again", f.rbacFrom)}
	}
	e := &markerEditor{flags: f, stdio: stdio, report: r, before: map[string][]byte{}, patch: &markerPatch{
		Report: f.rbacFrom, Changes: []markerChange{}, Left: []string{}, check: f.check,
	}}
	if err := e.read(); err != nil {
		return nil, err
	}
	if err := e.edit(); err != nil {
		return nil, err
	}
	if e.describe(); f.check || len(e.patch.Changes) == 0 {
		return e.patch, nil
	}
	if err := e.prove(ctx); err != nil {
		return nil, errors.Join(err, e.restore(context.WithoutCancel(ctx)))
	}
	e.describe()
	return e.patch, nil
}

func (e *markerEditor) read() (err error) {
	if e.project, e.roles, err = manifest.Roles(e.flags.dir); err != nil {
		return err
	}
	if len(e.roles) == 0 {
		return usageError{errors.New("koboshi generate makes no roles in this project; add controller-gen's argument rbac:roleName=manager-role to the Makefile's target manifests")}
	}
	for _, role := range e.roles {
		files, err := permissions.Read(role.Sources)
		if err != nil {
			return err
		}
		e.files = append(e.files, files)
	}
	return nil
}

// edit edits the markers in memory as the report demands.
func (e *markerEditor) edit() error {
	if len(e.report.Unused) > 0 {
		if why := incomplete(e.report); why != "" {
			e.patch.Left = append(e.patch.Left, fmt.Sprintf("unused permissions are kept, because %s; run the complete check, and then this command again", why))
		} else {
			e.remove()
		}
	}
	return e.add(refused(e.report))
}

// incomplete returns the reason why permissions may be needed although the check did not need
// them, or "". A controller may need a permission only after a fault.
func incomplete(r *report.Report) string {
	switch {
	case len(refused(r)) > 0:
		return "the controller did not get past the requests that were refused"
	case len(r.NotLearnt) > 0:
		return "the check left out some of the scenarios"
	case len(r.LeftOut) > 0 || r.LeftToShards > 0 || r.MissingShards > 0:
		return "the check left out some of the planned faults"
	case slices.ContainsFunc(r.Args, func(arg string) bool { return strings.HasPrefix(arg, "--faults=") }):
		return "the check injected only some kinds of faults"
	case slices.ContainsFunc(r.Settings, func(s string) bool { return strings.HasPrefix(s, "faults.") }):
		return "the project's settings select only some kinds of faults"
	case slices.ContainsFunc(r.Settings, func(s string) bool { return strings.HasPrefix(s, "interference.") }):
		return "the project's settings keep other clients from changing some objects"
	case slices.Contains(r.Args, "--stop-at-first=true"):
		return "the check stopped at the first finding"
	}
	return ""
}

// remove removes what no run needed.
func (e *markerEditor) remove() {
	for i, role := range e.roles {
		var unused []permissions.Permission
		for _, u := range e.report.Unused {
			if u.File == role.Path {
				unused = append(unused, permissions.Permission{Verb: u.Verb, Group: u.Group, Resource: u.Resource, Namespace: u.Namespace})
			}
		}
		e.files[i].Remove(unused)
	}
	e.left()
}

// add adds the permissions that refused requests needed.
func (e *markerEditor) add(refused []judge.Finding) error {
	var missing []permissions.Permission
	for _, f := range refused {
		if text := f.Sentence + "; the server does not say which permission is missing"; len(f.Missing) == 0 && !slices.Contains(e.patch.Left, text) {
			e.patch.Left = append(e.patch.Left, text)
		}
		for _, p := range f.Missing {
			missing = append(missing, permissions.Permission{Verb: p.Verb, Group: p.Group, Resource: p.Resource, Path: p.Path})
		}
	}
	return e.files[0].Add(missing)
}

// left notes the unused permissions that do not come from a marker.
func (e *markerEditor) left() {
	unused := slices.DeleteFunc(slices.Clone(e.report.Unused), func(u judge.Unused) bool {
		i := slices.IndexFunc(e.roles, func(role manifest.Role) bool { return role.Path == u.File })
		return i >= 0 && e.files[i].Had(permissions.Permission{Verb: u.Verb, Group: u.Group, Resource: u.Resource, Namespace: u.Namespace})
	})
	for _, f := range judge.RemarkUnused(unused) {
		e.patch.Left = append(e.patch.Left, f.Sentence+"; it does not come from a marker, so edit the file")
	}
}

// refused returns the findings about requests that were refused.
func refused(r *report.Report) []judge.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f judge.Finding) bool { return f.Verdict != judge.RBACMissing })
}

// describe lists the changes so far.
func (e *markerEditor) describe() {
	e.patch.Changes = []markerChange{}
	for _, files := range e.files {
		for _, c := range files.Changes() {
			if name, err := filepath.Rel(e.project, c.File); err == nil {
				c.File = filepath.ToSlash(name)
			}
			e.patch.Changes = append(e.patch.Changes, markerChange(c))
		}
	}
}

// prove writes the markers and runs the scenarios, until no request is refused. A permission that
// was removed, but is needed after all, comes back in this way.
func (e *markerEditor) prove(ctx context.Context) error {
	for e.patch.Rounds < maxRounds {
		if err := e.write(ctx); err != nil {
			return err
		}
		r, err := e.run(ctx)
		if err != nil {
			return err
		}
		e.patch.Rounds++
		if f := e.newFinding(r); f != nil {
			return fmt.Errorf("with the new markers, scenario %s has a different finding: %s: %s; all files were restored", f.Scenario, f.Verdict, f.Sentence)
		}
		missing := refused(r)
		if len(missing) == 0 {
			return nil
		}
		was := e.contents()
		if err := e.add(missing); err != nil {
			return err
		}
		if maps.EqualFunc(was, e.contents(), bytes.Equal) {
			return fmt.Errorf("%s, and no marker can change that; all files are as before", missing[0].Sentence)
		}
	}
	return fmt.Errorf("requests are still refused after %d rounds; all files are as before", maxRounds)
}

// write writes the Go files, and generates the roles.
func (e *markerEditor) write(ctx context.Context) error {
	for name, data := range e.contents() {
		if _, known := e.before[name]; !known {
			was, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			e.before[name] = was
		}
		if err := replaceFile(name, data); err != nil {
			return err
		}
	}
	return e.generate(ctx)
}

// contents returns the files whose content has changed since they were read.
func (e *markerEditor) contents() map[string][]byte {
	all := map[string][]byte{}
	for _, files := range e.files {
		maps.Copy(all, files.Contents())
	}
	return all
}

func (e *markerEditor) generate(ctx context.Context) error {
	result, err := generateFiles(ctx, e.flags.options(nil))
	if err == nil && len(result.Problems) > 0 {
		err = errors.New(result.Problems[0].String())
	}
	return err
}

// run runs the scenarios of the report without faults.
func (e *markerEditor) run(ctx context.Context) (*report.Report, error) {
	var f checkFlags
	o, err := f.again(e.flags.rbacFrom, e.report.Args, nil)
	if err != nil {
		return nil, err
	}
	if f.project.Dir == "." {
		f.project.Dir = e.flags.dir
	}
	if err := f.configure(&o); err != nil {
		return nil, err
	}
	o.PlanOnly, o.Seed, o.Budget, o.Horizon = true, e.report.Seed, 0, 0
	result, err := f.check(ctx, o, e.stdio)
	if err != nil {
		return nil, fmt.Errorf("running the scenarios with the new markers: %w; all files are as before", err)
	}
	return result.Report, nil
}

// newFinding returns a finding that the original report does not have.
func (e *markerEditor) newFinding(r *report.Report) *judge.Finding {
	for i, f := range r.Findings {
		known := slices.ContainsFunc(e.report.Findings, func(old judge.Finding) bool { return old.ID == f.ID })
		if f.Verdict != judge.RBACMissing && !known && len(refused(r)) == 0 {
			return &r.Findings[i]
		}
	}
	return nil
}

// restore writes all files as they were.
func (e *markerEditor) restore(ctx context.Context) error {
	for name, data := range e.before {
		if err := replaceFile(name, data); err != nil {
			return err
		}
	}
	return e.generate(ctx)
}

// replaceFile writes a file that exists, so that it keeps its mode and is never half written.
func replaceFile(name string, data []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	next := name + ".koboshi"
	if err := os.WriteFile(next, data, info.Mode().Perm()); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// write writes the changes like a diff.
func (p *markerPatch) write(out, notes io.Writer) error {
	if p == nil {
		return nil
	}
	for _, left := range p.Left {
		_, _ = fmt.Fprintf(notes, "koboshi: %s\n", left)
	}
	var text strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&text, "%s:%d\n", c.File, c.Line)
		if c.Old != "" {
			fmt.Fprintf(&text, "- %s\n", c.Old)
		}
		for _, line := range c.New {
			fmt.Fprintf(&text, "+ %s\n", line)
		}
	}
	switch {
	case len(p.Changes) == 0:
		text.WriteString("no marker has to change\n")
	case p.Rounds > 0:
		fmt.Fprintf(&text, "with these markers, no request of the scenarios was refused (%s)\n", rounds(p.Rounds))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// verdict returns an error if markers would change.
func (p *markerPatch) verdict() error {
	if p == nil || !p.check || len(p.Changes) == 0 {
		return nil
	}
	return fmt.Errorf("the markers grant too much or too little; run koboshi generate --rbac-from %s", p.Report)
}
