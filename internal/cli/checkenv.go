package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// resolveEnv completes the values of --env: it turns NAME into NAME=VALUE with the value in
// the environment of this process.
func resolveEnv(given []string) ([]string, error) {
	var env []string
	for _, entry := range given {
		name, _, hasValue := strings.Cut(entry, "=")
		if name == "" || strings.ContainsAny(name, " \t\n\x00") {
			return nil, fmt.Errorf("--env has no valid name; write NAME=VALUE, or NAME for a variable of your environment")
		}
		if !hasValue {
			value, ok := os.LookupEnv(name)
			if !ok {
				return nil, fmt.Errorf("--env %s: %s is not set in your environment; set it there, or write --env %s=VALUE", name, name, name)
			}
			entry = name + "=" + value
		}
		env = append(env, entry)
	}
	return env, nil
}

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
