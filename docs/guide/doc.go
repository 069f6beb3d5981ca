// Package guide is the Koboshi handbook: Markdown in mdBook's layout, ordered by
// SUMMARY.md. Its tests keep the book whole and true.
package guide

import "embed"

// Files are the pages and pictures, as a MarkdownView takes them: SUMMARY.md is
// at the root, and paths have slashes.
//
//go:embed *.md */*.md images/*.svg
var Files embed.FS
