// Package contract tests the behaviour on which controller-runtime's envtest and other
// programs that start etcd and kube-apiserver rely. The tests use flags,
// files, signals and the API, and start the programs through envtest itself.
//
// If CONTRACT_ASSETS names a folder of stock programs, the same tests show that they
// require only what stock does, except for tests that are marked as promises that only
// Koboshi makes.
package contract
