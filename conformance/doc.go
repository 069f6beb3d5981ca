// Package conformance holds black-box tests of the built binary: what a client
// of the plane can observe equals upstream. Each test is named after its claim,
// and fails when the part that it names is taken out (see takeout_test.go).
//
// The tests use only the binary, its flags and the Kubernetes API.
package conformance
