// Package koboshi has no code, because the program is in cmd/koboshi. This folder holds
// the tests that enforce the architecture of the repository.
package koboshi
