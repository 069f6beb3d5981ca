// Package helmchart renders Helm charts in this process. It starts no program, and downloads nothing.
package helmchart

import (
	"maps"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// Render returns the rendered templates of a chart by their paths, for the first revision of a release.
// Like helm template, it leaves out the notes, and partial templates. It does not return the CRDs in
// the folder crds. kubernetes is the version that the chart sees, such as v1.37.0.
func Render(c *chart.Chart, values map[string]any, name, namespace, kubernetes string) (map[string]string, error) {
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	release := common.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := commonutil.ToRenderValues(c, values, release, capabilities)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(texts, func(file, _ string) bool {
		return path.Base(file) == "NOTES.txt" || strings.HasPrefix(path.Base(file), "_")
	})
	return texts, nil
}
