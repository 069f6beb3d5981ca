// Package book reads the files of a documentation site as a book: the order of its
// pages, their titles and addresses, and the problems that readers would notice.
//
// Package book is pure: it turns files into a Book, without Kubernetes and without the network.
// The webhook, the controller and the viewer all use it, so their results agree.
//
// # SUMMARY.md
//
// A file SUMMARY.md at the root orders the navigation, with the same meaning as in
// mdBook:
//
//   - A first heading of level 1 is the title of the book. The heading "Summary" is
//     ignored.
//   - Links in paragraphs before the first list are prefix chapters; links in
//     paragraphs after the last list are suffix chapters. Prefix and suffix chapters
//     are neither numbered nor nested. A list or a heading of level 1 after suffix
//     chapters is refused.
//   - List items are numbered chapters; lists inside items nest. Each list item must
//     begin with a link; anything else is refused. Chapter numbers continue across
//     parts and separators.
//   - Headings of level 1 before a list are part titles; other headings and
//     comments are ignored.
//   - A thematic break (---) is a separator.
//   - A link without a target, [Title](), is a draft.
//
// An entry must link to a Markdown file of the book, and each file has at most one entry.
// mdBook creates missing files; here, entries for missing files are refused.
//
// Without SUMMARY.md the navigation is the directory tree, ordered by name. In each
// directory, README.md or index.md comes first.
package book
