// Package book reads the files of a documentation site as a book: the order of its
// pages, their titles and addresses, and what readers would stumble over.
//
// It is pure: files in, a Book out, no Kubernetes and no network. The webhook, the
// controller and the viewer all use it, and thus agree.
//
// # SUMMARY.md
//
// A file SUMMARY.md at the root orders the navigation with the meaning it has in
// mdBook:
//
//   - A first heading of level 1 is the title of the book. One that only says
//     "Summary" is ignored.
//   - Links in paragraphs before the first list are prefix chapters, those after
//     the last list are suffix chapters. Neither is numbered or nested. A list or
//     a heading of level 1 after suffix chapters is refused.
//   - Items of lists are numbered chapters; lists inside items nest. Each item
//     begins with a link, anything else is refused. Numbers run on through parts
//     and separators.
//   - Headings of level 1 before a list are part titles; other headings and
//     comments are ignored.
//   - A thematic break (---) is a separator.
//   - A link to nowhere, [Title](), is a draft.
//
// An entry leads to a Markdown file of the book, and each file has at most one
// entry. mdBook writes the files that are missing; here they are refused.
//
// Without SUMMARY.md the navigation is the tree of directories, in the order of
// their names, with each directory's README.md or index.md first.
package book
