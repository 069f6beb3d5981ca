package cli

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// withoutValue removes the value from a value of --env, because it may be secret. It keeps
// variables of koboshi check, whose values are different in each run.
func withoutValue(entry string) string {
	name, value, _ := strings.Cut(entry, "=")
	if value == "$("+subject.Kubeconfig+")" || value == "$("+subject.Certs+")" {
		return entry
	}
	return name
}

// overrideEnv returns the values of --env that are saved in a finding. Values that are given
// now replace saved ones with the same name, or are added.
func overrideEnv(saved, given []string) []string {
	name := func(entry string) string { before, _, _ := strings.Cut(entry, "="); return before }
	kept := slices.DeleteFunc(slices.Clone(saved), func(entry string) bool {
		return slices.ContainsFunc(given, func(g string) bool { return name(g) == name(entry) })
	})
	return append(kept, given...)
}

// overrideSet returns the settings of a chart for a replay: those that are given now, and the
// saved ones that are missing, which have no value.
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
