// Package install tests what a person installs: the kustomizations, the Helm
// chart, the image's context. What needs an API server is skipped without one;
// hack/with-koboshi.sh provides it.
package install
