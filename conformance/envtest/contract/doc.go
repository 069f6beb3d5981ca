// Package contract tests the behaviour that controller-runtime's envtest, and
// other programs that start etcd and kube-apiserver, rely on. The tests use flags,
// files, signals and the API, and start the programs through envtest itself.
//
// If CONTRACT_ASSETS names a folder of stock programs, the same tests prove
// that they require nothing that stock does not do, except for tests that are
// marked as promises of Koboshi.
package contract
