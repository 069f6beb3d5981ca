package cli

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// withoutValue removes the value from a value of --env, because it may be secret. It keeps the
// values $(KUBECONFIG) and $(CERTS), which koboshi check replaces in each run.
func withoutValue(entry string) string {
	name, value, _ := strings.Cut(entry, "=")
	if value == "$("+subject.Kubeconfig+")" || value == "$("+subject.Certs+")" {
		return entry
	}
	return name
}

// overrideEnv joins the values of --env that are saved in a finding with the values that are given
// now. A value that is given now replaces the saved value with the same name.
func overrideEnv(saved, given []string) []string {
	name := func(entry string) string { before, _, _ := strings.Cut(entry, "="); return before }
	kept := slices.DeleteFunc(slices.Clone(saved), func(entry string) bool {
		return slices.ContainsFunc(given, func(g string) bool { return name(g) == name(entry) })
	})
	return append(kept, given...)
}

// overrideSet returns the settings of a chart for a replay: the settings that are given now, and
// the names of the saved settings that are not given now, which have no value.
func overrideSet(saved, given []string) (all []string) {
	var names []string
	for _, entry := range given {
		names = append(names, project.SettingNames(entry)...)
	}
	for _, name := range saved {
		if !slices.Contains(names, name) {
			all = append(all, name)
		}
	}
	return append(all, given...)
}

// privateValues returns the values of --env.
func privateValues(env []string) (values []string) {
	for _, entry := range env {
		if _, value, _ := strings.Cut(entry, "="); withoutValue(entry) != entry {
			values = append(values, value)
		}
	}
	return values
}
