// Package contract holds the tests of what controller-runtime's envtest, and
// other programs that start etcd and kube-apiserver, rely on. They know flags,
// files, signals and the API, and reach the programs through envtest itself.
//
// With CONTRACT_ASSETS naming a folder of stock programs the same tests show
// that they demand nothing which stock does not do, except where a test says
// that it is a promise of Koboshi's.
package contract
