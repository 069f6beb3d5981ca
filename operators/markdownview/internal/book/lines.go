package book

import (
	"slices"

	"github.com/yuin/goldmark/ast"
)

// lines converts offsets into line numbers.
type lines struct {
	starts []int // the offset of each line after the first
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

// at returns the line of an offset, counting from 1.
func (l lines) at(offset int) int {
	n, found := slices.BinarySearch(l.starts, max(offset, 0))
	if found {
		n++
	}
	return n + 1
}

// of returns the line of a node. If the node has no line, of returns the line of the node's
// parent.
func (l lines) of(n ast.Node) int {
	for ; n != nil; n = n.Parent() {
		if pos := n.Pos(); pos >= 0 {
			return l.at(pos)
		}
	}
	return 0
}
