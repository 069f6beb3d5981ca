package project

import (
	"fmt"
	"strings"
)

// SettingNames returns the paths that an entry of Options.Set sets, without their values,
// which may be secret. For "image.tag=v1,labels={a,b}", it returns image.tag and labels. If
// the entry has no value at all, it is a path.
func SettingNames(entry string) []string {
	names, parts := settingNames(entry)
	if len(names) == 0 && parts == 1 {
		return []string{entry}
	}
	return names
}

// settingNames returns the paths that have a value, and the number of all parts of an entry.
// It follows Helm's syntax: a comma ends a part unless it is in braces, and a backslash
// escapes the next character.
func settingNames(entry string) (names []string, parts int) {
	const end = rune(0)
	var name strings.Builder
	var inValue, valueBegins, inBraces, escaped bool
	for _, r := range entry + string(end) {
		first := valueBegins
		valueBegins = false
		switch {
		case r == end || r == ',' && !inBraces && !escaped:
			if inValue || name.Len() > 0 {
				parts++
			}
			if inValue {
				names = append(names, name.String())
			}
			name.Reset()
			inValue, inBraces = false, false
		case r == '=' && !inValue && !escaped:
			inValue, valueBegins = true, true
		case !inValue:
			name.WriteRune(r)
		case r == '{' && first:
			inBraces = true
		case r == '}' && !escaped:
			inBraces = false
		}
		escaped = r == '\\' && !escaped
	}
	return names, parts
}

// checkSettings returns an error if a path has no value. The error does not contain the values of
// other paths.
func checkSettings(entries []string) error {
	for _, entry := range entries {
		names, parts := settingNames(entry)
		switch {
		case len(names) == parts && parts > 0:
		case len(names) == 0 && parts == 1:
			return fmt.Errorf("%s %s: the value is missing, because values are not saved; write %s %s=VALUE", flagSet, entry, flagSet, entry)
		default:
			named := strings.TrimSpace(flagSet + " " + strings.Join(names, ","))
			return fmt.Errorf(`%s: a part has no value; write PATH=VALUE, and \, for a comma in a value`, named)
		}
	}
	return nil
}
