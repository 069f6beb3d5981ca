// Command comments fails when too many doc comments in a module tree open with a noun
// clause instead of naming the thing or describing its action:
//
//	// Late says that the step took too long.      reported
//	// fleet is what the labs are to the check.    reported
//	// Late reports whether the step took too long.
//	// fleet manages the lab processes.
//
//	comments [-limit PERCENT] [-v] [DIR]
//
// If the command fails, it prints the position of each comment that opens with a noun
// clause. The rules are in CONTRIBUTING.md.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	limit := flag.Float64("limit", 2, "fail if at least this percentage of doc comments opens with a noun clause")
	all := flag.Bool("v", false, "print the comments that open with a noun clause even if their percentage is below the limit")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	c, err := count(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "comments:", err)
		os.Exit(2)
	}
	share := 100 * float64(len(c.clauses)) / float64(max(c.docs, 1))
	if share >= *limit || *all {
		for _, found := range c.clauses {
			fmt.Println(found)
		}
	}
	fmt.Printf("%d of %d doc comments, %.1f %%, open with a noun clause; the limit is %g %%\n", len(c.clauses), c.docs, share, *limit)
	if share >= *limit {
		os.Exit(1)
	}
}

// counts holds the number of doc comments in a tree, and the position of each one that
// opens with a noun clause.
type counts struct {
	docs    int
	clauses []string
}

// clause matches a comment that opens with a noun clause: the documented name, or a phrase
// for it, followed by the clause.
var clause = regexp.MustCompile(`^(?:An? |The )?\S+ (?:(?:is|are) (?:what|who|whose|how|that|whatever|whoever)|says|tells)\b`)

// count reads every Go file in dir and its subfolders, except generated ones.
func count(dir string) (counts, error) {
	var c counts
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != dir && skipped(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		return c.add(name)
	})
	return c, err
}

// skipped reports whether the folder holds only code from outside this project.
func skipped(dir string) bool {
	return strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_") ||
		slices.Contains([]string{"bin", "dist", "node_modules", "vendor"}, dir)
}

func (c *counts) add(name string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		doc := docOf(n)
		if doc == nil || doc.Text() == "" {
			return true
		}
		c.docs++
		if text := strings.Join(strings.Fields(doc.Text()), " "); clause.MatchString(text) {
			c.clauses = append(c.clauses, fmt.Sprintf("%s: %s", set.Position(doc.Pos()), clause.FindString(text)))
		}
		return true
	})
	return nil
}

// docOf returns the doc comment of a file, a declaration or a field.
func docOf(n ast.Node) *ast.CommentGroup {
	switch n := n.(type) {
	case *ast.File:
		return n.Doc
	case *ast.GenDecl:
		return n.Doc
	case *ast.FuncDecl:
		return n.Doc
	case *ast.TypeSpec:
		return n.Doc
	case *ast.ValueSpec:
		return n.Doc
	case *ast.Field:
		return n.Doc
	}
	return nil
}
