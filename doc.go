// Package koboshi is empty: the program is in cmd/koboshi. What stands here are
// the tests by which the repository keeps its own architecture.
package koboshi
