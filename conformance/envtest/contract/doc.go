// Package contract tests the behavior that controller-runtime's envtest, and other programs that
// start etcd and kube-apiserver, rely on. The tests use flags, files, signals and the API, and
// start the programs through envtest itself.
//
// If CONTRACT_ASSETS names a folder of stock programs, the same tests run with these
// programs, which shows that stock passes the tests, too. Tests of promises that only
// Koboshi makes are marked, and are skipped with stock.
package contract
