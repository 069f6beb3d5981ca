// Package spelling measures how similar two names are, so that an error can suggest the
// name that was probably meant.
package spelling

// Distance returns the Levenshtein distance of two texts: the number of bytes to
// insert, delete or replace to turn one into the other. The time that it takes grows with
// the product of the lengths.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
