// Package conformance holds black-box tests of the built binary, which show that clients of the
// plane observe the same behavior as with upstream. Each test is named after its claim, and fails
// if the part of Kubernetes in that claim is removed (see takeout_test.go).
//
// The tests use nothing but the binary, its flags and the Kubernetes API.
package conformance
