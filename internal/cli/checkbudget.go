package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/settings"
)

// combineBudget returns an error if --update-budget is given with a flag with which it cannot work.
func (f *checkFlags) combineBudget() error {
	switch {
	case !f.updateBudget:
		return nil
	case f.upgrade != "":
		return errors.New("--update-budget needs whole scenarios, but --upgrade-from runs only their first steps; run koboshi check --plan --update-budget instead")
	case f.driver.command != "":
		return errors.New("--update-budget counts the requests of scenarios, but --driver uses a test suite, whose requests depend on its pauses; omit one of them")
	case f.shard != "":
		return errors.New("--update-budget writes one file, but with --shard, each shard would write it; run koboshi check --plan --update-budget once instead")
	}
	return nil
}

// writeBudget writes the budget of requests that a check has measured, and reports what it did in one
// line.
func (f *checkFlags) writeBudget(result *check.Result, stdio Stdio) error {
	if !f.updateBudget {
		return nil
	}
	path := f.settingsFile()
	switch {
	case result.NoBudget != "":
		return usageError{fmt.Errorf("--update-budget: %s was not changed, because %s; run the command again when all scenarios can be run", path, result.NoBudget)}
	case len(result.Budget) == 0:
		return usageError{fmt.Errorf("--update-budget: %s was not changed, because every scenario depends on the seed; write a scenario and name it with --scenario", path)}
	}
	if err := settings.UpdateBudget(path, result.Budget); err != nil {
		return usageError{fmt.Errorf("--update-budget: %w", err)}
	}
	_, err := fmt.Fprintf(stdio.Err, "the budget of requests of %s is in %s; review and commit it\n", noun.Count(len(result.Budget), "scenario"), path)
	return err
}

// settingsFile returns the path of the project's settings, which may not exist.
func (f *checkFlags) settingsFile() string {
	if f.config != "" {
		return f.config
	}
	return filepath.Join(f.project.Dir, settings.Name)
}
