package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// scenarioFiles writes scenarios to a folder, one per file.
type scenarioFiles struct {
	dir   string
	force bool // replace existing files
}

func (f *scenarioFiles) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.dir, "output-dir", "", "folder to write the files to")
}

func (f *scenarioFiles) registerForce(fs *pflag.FlagSet) {
	fs.BoolVar(&f.force, "force", false, "replace existing files")
}

func (f *scenarioFiles) check() error {
	if f.dir == "" {
		return usageError{errors.New("no folder is given; name the folder to write to with --output-dir")}
	}
	return nil
}

// path returns the path of the file of a scenario.
func (f *scenarioFiles) path(sc *scenario.Scenario) string {
	return filepath.Join(f.dir, sc.Name+".yaml")
}

// write writes one file for each scenario, with a comment at its top. If one of the files exists,
// it writes nothing.
func (f *scenarioFiles) write(all []*scenario.Scenario, comment func(*scenario.Scenario) string) error {
	for _, sc := range all {
		path := f.path(sc)
		if _, err := os.Lstat(path); err == nil && !f.force {
			return usageError{fmt.Errorf("%s exists, so nothing was written; choose another folder with --output-dir, or replace existing files with --force", path)}
		}
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return fmt.Errorf("writing scenarios: %w", err)
	}
	for _, sc := range all {
		data, err := sc.YAML(comment(sc))
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.path(sc), data, 0o644); err != nil {
			return fmt.Errorf("writing scenario %s: %w", sc.Name, err)
		}
	}
	return nil
}

// usage returns the part of a comment that names the commands for a scenario.
func (f *scenarioFiles) usage(sc *scenario.Scenario) string {
	return strings.Join([]string{
		"", "  koboshi check --scenario " + f.path(sc),
		"", "With all files of this folder:", "", "  koboshi check --scenario " + f.dir, "",
	}, "\n")
}
