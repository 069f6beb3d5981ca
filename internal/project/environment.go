package project

import (
	"fmt"
	"os"
	"strings"
)

// Environment gives each entry of the form NAME the value that the variable has in this
// process, so that a secret value need not be typed. Entries of the form NAME=VALUE stay as
// they are.
func Environment(entries []string) ([]string, error) {
	var env []string
	for _, entry := range entries {
		name, _, hasValue := strings.Cut(entry, "=")
		if name == "" || strings.ContainsAny(name, " \t\n\x00") {
			return nil, fmt.Errorf("%s has no valid name; write NAME=VALUE, or NAME for a variable of your environment", flagEnv)
		}
		if !hasValue {
			value, ok := os.LookupEnv(name)
			if !ok {
				return nil, fmt.Errorf("%s %s: %s is not set in your environment; set it there, or write %s %s=VALUE", flagEnv, name, name, flagEnv, name)
			}
			entry = name + "=" + value
		}
		env = append(env, entry)
	}
	return env, nil
}
