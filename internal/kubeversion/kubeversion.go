// Package kubeversion sets the version of Kubernetes that the program reports.
//
// Upstream's own builds set the version with linker flags, which `go install` cannot do; if
// the version were not set, /version would return v0.0.0-master.
package kubeversion

import (
	_ "unsafe" // for go:linkname

	"k8s.io/component-base/version"
)

// Version is the version of k8s.io/kubernetes in go.mod; a test ensures that they are
// equal.
const Version = "1.37.0"

//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

//go:linkname gitCommit k8s.io/component-base/version.gitCommit
var gitCommit string

//go:linkname gitTreeState k8s.io/component-base/version.gitTreeState
var gitTreeState string

func init() {
	gitVersion = "v" + Version
	// The module does not record the commit, and an empty gitCommit is better than a
	// placeholder.
	gitCommit, gitTreeState = "", "clean"
	if err := version.SetDynamicVersion(gitVersion); err != nil {
		panic(err) // a programming error: the constant Version is malformed
	}
}
