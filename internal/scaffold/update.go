package scaffold

import (
	"fmt"
	"maps"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/scaffold/merge"
)

// UpdateOptions describes the move of a project to the templates of this program.
type UpdateOptions struct {
	Dir string
	// Adopt only records the templates, in a project that koboshi init has not made. Later
	// versions can then update the project.
	Adopt bool
	// SkipConflicts leaves out the parts of the difference that have conflicts.
	SkipConflicts bool
	// Force replaces and deletes whole files even if a person has changed them.
	Force bool
}

// Update plans the move of a project to the templates of this program. It merges the
// difference between two renderings of the same PROJECT: with the recorded templates and with
// those of this program.
func Update(o UpdateOptions) (*Plan, error) {
	return o.update(record{embedded(), ownVersion()})
}

// update plans the move of a project to the templates of a record.
func (o UpdateOptions) update(to record) (*Plan, error) {
	f, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	from, err := recordOf(o.Dir)
	if err != nil {
		return nil, err
	}
	p := &Plan{Dir: o.Dir}
	if o.Adopt || from == nil {
		if err := o.checkAdopt(from != nil); err != nil {
			return nil, err
		}
		return p, p.record(to)
	}
	if maps.EqualFunc(from.templates, to.templates, slices.Equal) {
		return p, nil
	}
	if newer(from.version, to.version) {
		return nil, fmt.Errorf("the project has the scaffold of koboshi %s, and this is koboshi %s; install the newer version", from.version, to.version)
	}
	header, err := headerOf(o.Dir)
	if err != nil {
		return nil, err
	}
	before, err := scaffolding{from.templates, header, true}.render(f)
	if err != nil {
		return nil, fmt.Errorf("rendering the templates of %s: %w", recordPath, err)
	}
	after, err := scaffolding{to.templates, header, false}.render(f)
	if err != nil {
		return nil, err
	}
	if p.Changes, err = difference(o.Dir, before, after, merge.Update); err != nil {
		return nil, err
	}
	o.resolve(p)
	if err := p.agents(f); err != nil {
		return nil, err
	}
	if p.changes("go.mod") {
		p.Notes = append(p.Notes, "the versions in go.mod have changed; run go mod tidy")
	}
	p.Generate = true
	// The record comes last: if writing fails before, the command can be repeated.
	return p, p.record(to)
}

// checkAdopt returns an error if --adopt is given for a project with recorded templates, or is
// missing for a project without them.
func (o UpdateOptions) checkAdopt(recorded bool) error {
	switch {
	case recorded:
		return fmt.Errorf("--adopt: %s exists already, so omit the flag", recordPath)
	case !o.Adopt:
		return fmt.Errorf("%s, which holds the templates that made the project, is missing; restore it with git, or prepare the project for the next update with --adopt", recordPath)
	}
	return nil
}

// resolve overrides conflicts, as the options demand.
func (o UpdateOptions) resolve(p *Plan) {
	if o.Force {
		force(p.Changes)
	}
	if o.SkipConflicts {
		p.Changes, p.Notes = skip(p.Changes)
	}
}

// changes reports whether the plan changes a file.
func (p *Plan) changes(name string) bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Path == name })
}
