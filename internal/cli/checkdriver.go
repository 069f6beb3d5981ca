package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// defaultDriverTimeout is the time that a test suite may take.
const defaultDriverTimeout = 10 * time.Minute

// driverFlags holds the flags of koboshi check about a test suite as given.
type driverFlags struct {
	command string
	timeout time.Duration
}

func (d *driverFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&d.command, "driver", "", "command line of a test suite to use instead of scenarios, such as 'go test ./test/e2e/...'; it runs in the folder of --dir, with KUBECONFIG set")
	fs.DurationVar(&d.timeout, "driver-timeout", defaultDriverTimeout, "how long the command of --driver may take")
}

// check returns an error if the flags cannot be combined with other flags of koboshi check.
func (d *driverFlags) check(f *checkFlags, fs *pflag.FlagSet) error {
	given := fs.Changed("driver")
	switch {
	case !given && fs.Changed("driver-timeout"):
		return errors.New("--driver-timeout limits the command of --driver, which is not given; omit it, or add --driver")
	case !given:
		return nil
	case strings.TrimSpace(d.command) == "":
		return errors.New("--driver is empty; give it the command of a test suite, such as --driver 'go test ./test/e2e/...'")
	case d.timeout <= 0:
		return fmt.Errorf("--driver-timeout is %s; use a positive time such as 5m", d.timeout)
	case len(f.scenarios) > 0:
		return errors.New("--driver and --scenario both say what happens in the cluster; omit one of them")
	case f.project.Samples != "":
		return errors.New("--samples names samples from which to generate scenarios, but --driver uses a test suite instead; omit one of them")
	case f.inputs:
		return errors.New("--inputs changes the fields of samples, but --driver uses a test suite instead; omit one of them")
	case f.paths:
		return errors.New("--paths makes scenarios from samples, but --driver uses a test suite instead; omit one of them")
	}
	return nil
}

// scenarios returns the scenario that runs the suite in the folder dir.
func (d *driverFlags) scenarios(dir string) []*scenario.Scenario {
	return []*scenario.Scenario{scenario.Driven(d.command, dir, d.timeout)}
}

// suites prepares the check of scenarios that are test suites. A suite expects more of a cluster than
// the controller does, such as Pods that run.
func (f *checkFlags) suites(o *check.Options) {
	if !slices.ContainsFunc(o.Scenarios, (*scenario.Scenario).HasSuite) {
		return
	}
	if o.ProfileChosen && o.Profile == subject.ProfileGC {
		o.Profile, o.ProfileReason = subject.ProfileWorkloads, "test suites expect that Pods run"
	}
	file := filepath.Join(filepath.Dir(journalFolder(f.findings)), "suite.log")
	o.SuiteOutput = func(text string) {
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			_ = os.Remove(file) // an older file may be readable for others
			err = os.WriteFile(file, []byte(text), 0o600)
		}
		if err != nil {
			o.Observer.Note(fmt.Sprintf("the output of the test suite could not be written: %v", err))
			return
		}
		o.Observer.Note("the output of the test suite without a fault is in " + file)
	}
}
