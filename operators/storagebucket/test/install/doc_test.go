// Package install tests what users install: the kustomizations, the Helm chart, the build context
// of the image. Tests that need an API server are skipped without one; hack/with-koboshi.sh starts
// an API server for them.
package install
