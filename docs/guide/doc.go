// Package guide is the Koboshi handbook: Markdown in mdBook's layout, ordered by
// SUMMARY.md. Its tests check that the book is complete and correct.
package guide

import "embed"

// Files holds the pages and pictures in the form that a MarkdownView expects:
// SUMMARY.md is at the root, and paths have slashes.
//
//go:embed *.md */*.md images/*.svg
var Files embed.FS
