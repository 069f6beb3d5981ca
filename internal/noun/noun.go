// Package noun writes counts with their nouns.
package noun

import "strconv"

// Count returns a count with its noun, such as "1 run" or "3 runs". The plural of the noun must end
// in s.
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}
