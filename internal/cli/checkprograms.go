package cli

import (
	"fmt"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// profileOfPrograms is the profile of a check that runs programs in Pods, unless the user
// chooses another one.
const profileOfPrograms = "workloads"

// usePrograms adds the programs of --run and those of the settings to the options. If an image has
// a program in both, the flag takes precedence. A replay uses the same programs, even if the
// settings have changed by then.
func (f *checkFlags) usePrograms(o *check.Options, settings []string) error {
	set, err := parsePrograms("--run", f.run)
	if err != nil {
		return err
	}
	more, err := parsePrograms(o.OpinionsFile+": check.run", settings)
	if err != nil {
		return err
	}
	for _, program := range more {
		if both, err := set.Add(program); err == nil { // otherwise, the flag has a program for the image
			set = both
		}
	}
	if len(set) == 0 {
		return nil
	}
	if o.Profile == "" {
		f.profile, o.Profile, f.values["profile"] = profileOfPrograms, profileOfPrograms, []string{profileOfPrograms}
	}
	profile, err := controllers.Lookup(o.Profile)
	if err != nil {
		return err
	}
	if err := canRunPrograms(profile, "choose the profile "+profileOfPrograms+", or omit --run"); err != nil {
		return err
	}
	o.Programs = set
	f.values["run"] = nil
	for _, program := range set {
		f.values["run"] = append(f.values["run"], program.Image+"="+program.Path)
	}
	return nil
}

// programLines describes the programs that a replay runs in Pods.
func programLines(values []string) (lines []string) {
	for _, value := range values {
		program, err := programs.Parse(value)
		if err != nil {
			program = programs.Program{Path: value} // the replay ends with this error
		}
		lines = append(lines, fmt.Sprintf("  %-12s %s\n  %-12s for Pods with the image %s", "program", quoted([]string{filepath.Clean(program.Path)}), "", printable(program.Image)))
	}
	return lines
}
