package merge

import "bytes"

// Replaced applies a difference that replaces single lines, such as the lines that contain a
// name, wherever these lines are in ours. A line that a person has removed or rewritten stays
// as it is. All other differences are merged in the same way as by the function File.
func Replaced(name string, base, ours, theirs []byte) ([]byte, []Conflict) {
	b, t := split(base), split(theirs)
	if len(b) != len(t) || bytes.Equal(base, ours) {
		return File(name, base, ours, theirs)
	}
	next, same := map[string]string{}, map[string]bool{}
	for i := range b {
		if b[i] == t[i] {
			same[b[i]] = true
		} else if have, ok := next[b[i]]; ok && have != t[i] {
			return File(name, base, ours, theirs)
		} else {
			next[b[i]] = t[i]
		}
	}
	for line := range next {
		if same[line] {
			return File(name, base, ours, theirs)
		}
	}
	var out []byte
	for _, line := range split(ours) {
		if to, ok := next[line]; ok {
			line = to
		}
		out = append(out, line...)
	}
	return out, nil
}
