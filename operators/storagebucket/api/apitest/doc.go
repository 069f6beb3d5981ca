// Package apitest holds the tests that ask a real API server what it makes of
// the types in api/v1 and api/v1alpha1: what it accepts, with which words it
// refuses, and how objects fare when they are written in one version and read
// in another.
package apitest
