// Package conformance holds black-box tests of the built binary: what a client
// of the plane can observe equals upstream. Each test is named for its claim,
// and each fails when the part that it names is taken out (see takeout_test.go).
//
// The tests know the binary, its flags and the Kubernetes API, and nothing else.
package conformance
