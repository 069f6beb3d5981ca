package chart

import (
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// check renders the chart with its own values, so that a mistake in the person's files is found
// before anybody installs the chart.
func (c *Chart) check() error {
	var files []*archive.BufferedFile
	for _, path := range c.Paths() {
		files = append(files, &archive.BufferedFile{Name: path, Data: c.Files[path]})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return fmt.Errorf("the chart cannot be loaded: %w; correct the files in %s", err, Overlay)
	}
	if err := loaded.Validate(); err != nil {
		return fmt.Errorf("the chart is not valid: %w; correct the files in %s", err, Overlay)
	}
	c.Version = loaded.Metadata.Version
	if loaded.Metadata.Name != c.Name {
		return fmt.Errorf("%s/%s names the chart %s, but its templates belong to %s; remove the line", Overlay, chartFile, loaded.Metadata.Name, c.Name)
	}
	all, err := commonutil.ToRenderValues(loaded, nil, common.ReleaseOptions{
		Name: c.Name, Namespace: "default", Revision: 1, IsInstall: true,
	}, common.DefaultCapabilities.Copy())
	if err != nil {
		return fmt.Errorf("the values of the chart are not valid: %w; correct the files in %s", err, Overlay)
	}
	if _, err := engine.Render(loaded, all); err != nil {
		return fmt.Errorf("rendering the chart: %w; correct the files in %s", err, Overlay)
	}
	return nil
}
