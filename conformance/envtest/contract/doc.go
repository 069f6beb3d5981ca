// Package contract tests the behaviour on which controller-runtime's envtest and other
// programs that start etcd and kube-apiserver rely. The tests use flags,
// files, signals and the API, and start the programs through envtest itself.
//
// If CONTRACT_ASSETS names a folder of stock programs, the same tests run with stock,
// which shows that they require nothing that stock does not do. Tests of promises that
// only Koboshi makes are marked, and are skipped.
package contract
