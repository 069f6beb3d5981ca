package kubeversion

import (
	"strings"
	"testing"

	"k8s.io/component-base/version"
)

func TestUpstreamReportsTheStampedVersion(t *testing.T) {
	t.Parallel()
	got := version.Get()
	if got.GitVersion != "v"+Version {
		t.Errorf("gitVersion is %q, want v%s", got.GitVersion, Version)
	}
	if !strings.HasPrefix(Version, version.DefaultKubeBinaryVersion+".") {
		t.Errorf("Version is %s, and upstream's sources are of %s", Version, version.DefaultKubeBinaryVersion)
	}
	if got.GitCommit != "" || got.GitTreeState != "clean" {
		t.Errorf("a placeholder is reported: commit %q, tree %q", got.GitCommit, got.GitTreeState)
	}
}
