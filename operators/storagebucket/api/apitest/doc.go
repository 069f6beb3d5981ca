// Package apitest tests how a real API server treats the types in api/v1 and
// api/v1alpha1: which objects it accepts, which messages it returns when it refuses the
// others, and whether objects stay intact when they are written in one version and read
// in another.
package apitest
