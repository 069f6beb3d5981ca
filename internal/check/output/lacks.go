package output

import (
	"regexp"
	"strings"
)

const (
	variable = `([A-Z][A-Z0-9]*_[A-Z0-9_]+)`
	lacks    = `(?i:not set|unset|not defined|undefined|missing|required|must be set|must be provided|must be specified|not provided|not found|is empty|cannot be empty|must not be empty)`
)

// Each of these patterns matches the name of a variable that a program lacks.
var lackedVariables = []*regexp.Regexp{
	regexp.MustCompile(`\bKeyError: '` + variable + `'`),
	regexp.MustCompile(`\b` + variable + `\b[^\n]{0,60}\b` + lacks),
	regexp.MustCompile(lacks + `\b[^\n]{0,60}\b` + variable + `\b`),
}

// lackedSettings matches the messages of a program that lacks credentials, or a setting that
// usually comes from an environment variable.
var lackedSettings = regexp.MustCompile(`(?i)environment variables?\b[^\n]{0,80}(?:` + lacks + `)|(?:` + lacks + `)[^\n]{0,80}environment variable|` +
	`(?:missing|could not find|failed to find|must provide)[^\n]{0,20} region\b|no region\b|\bregion (?:is )?missing|\bMissingRegion\b|` +
	`(?:unable to locate|could not find|could not load|no valid|failed to (?:find|retrieve|load|refresh))[^\n]{0,40}\bcredentials?\b|\bNoCredentialProviders\b|credentials? (?:not found|missing)`)

// mostSearched is the number of lines at the end of the output that are searched for what a
// program lacks. Earlier lines are often warnings.
const mostSearched = 20

// Lacks describes the environment variable, the region or the credentials whose absence made a
// program exit, and names the flag that supplies it. Lacks returns "" if the end of the output
// names nothing of this kind.
func Lacks(text string) string {
	text = LastLines(text, mostSearched)
	for _, pattern := range lackedVariables {
		if found := pattern.FindStringSubmatch(text); found != nil {
			return "it seems to need the variable " + found[1] + "; set it with --env " + found[1] + "=VALUE"
		}
	}
	if found := lackedSettings.FindString(text); found != "" {
		if strings.Contains(strings.ToLower(found), "credential") {
			return "it seems to need credentials; set their variables with --env NAME=VALUE"
		}
		return "it seems to need a setting from its environment; set the variable with --env NAME=VALUE"
	}
	return ""
}
