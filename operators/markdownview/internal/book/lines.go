package book

import (
	"slices"

	"github.com/yuin/goldmark/ast"
)

// lines tells the line of an offset.
type lines struct {
	starts []int // of each line after the first
}

func newLines(source []byte) lines {
	var l lines
	for i, c := range source {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// at is the line, from 1, of an offset.
func (l lines) at(offset int) int {
	n, found := slices.BinarySearch(l.starts, max(offset, 0))
	if found {
		n++
	}
	return n + 1
}

// of is the line of a node, or that of what it is in where it has none.
func (l lines) of(n ast.Node) int {
	for ; n != nil; n = n.Parent() {
		if pos := n.Pos(); pos >= 0 {
			return l.at(pos)
		}
	}
	return 0
}
