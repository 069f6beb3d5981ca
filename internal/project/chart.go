package project

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/koboshi-dev/koboshi/internal/helmchart"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

// releaseNamespace is the namespace of the release, as for helm template.
const releaseNamespace = "default"

// render returns the objects of the chart in the options, as helm template --include-crds
// prints them.
func (p *Project) render() ([]document, error) {
	root := p.path(p.options.Helm)
	c, err := loader.Load(root)
	if err != nil {
		return nil, err
	}
	values, err := p.values()
	if err != nil {
		return nil, err
	}
	if err := complete(c, values); err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, err
	}
	rendered, err := helmchart.Render(c, values, c.Name(), releaseNamespace, p.kubernetes())
	if err != nil {
		return nil, fmt.Errorf("%w; set values with %s or %s", err, flagValues, flagSet)
	}
	return p.chartObjects(c, rendered)
}

// kubernetes returns the plane's version of Kubernetes.
func (p *Project) kubernetes() string {
	if p.options.Kubernetes != "" {
		return p.options.Kubernetes + ".0"
	}
	return kubeversion.Version
}

// complete returns an error if a chart lacks a chart on which it depends. A chart that a condition
// turns off is not needed, although Helm requires it.
func complete(c *chart.Chart, values map[string]any) error {
	all, err := commonutil.CoalesceValues(c, values)
	if err != nil {
		return err
	}
	var missing []string
	for _, wanted := range c.Metadata.Dependencies {
		if !isOff(wanted, all) && !slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == wanted.Name }) {
			missing = append(missing, wanted.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the chart lacks charts on which it depends: %s; koboshi downloads nothing, so run helm dependency build", strings.Join(missing, ", "))
	}
	return nil
}

// isOff reports whether the first condition of a dependency that has a value is false.
func isOff(d *chart.Dependency, values common.Values) bool {
	for condition := range strings.SplitSeq(d.Condition, ",") {
		value, err := values.PathValue(strings.TrimSpace(condition))
		if on, ok := value.(bool); err == nil && ok {
			return !on
		}
	}
	return false
}

// values returns the values of the chart: the values files and settings of the
// options, merged as Helm does it.
func (p *Project) values() (map[string]any, error) {
	values := map[string]any{}
	for _, file := range p.options.Values {
		data, err := os.ReadFile(p.path(file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w; name an existing file, relative to the project's folder", flagValues, err)
		}
		more, err := loader.LoadValues(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w; correct the file", flagValues, file, err)
		}
		values = loader.MergeMaps(values, more)
	}
	for _, setting := range p.options.Set {
		if strvals.ParseInto(setting, values) != nil { // its error may contain a part of the value
			return nil, fmt.Errorf(`%s %s is not in Helm's syntax; write PATH=VALUE, with \ before a comma or a brace in a value`, flagSet, strings.Join(SettingNames(setting), ","))
		}
	}
	return values, nil
}

// chartObjects returns the CRDs of a chart and the objects in its rendered templates.
func (p *Project) chartObjects(c *chart.Chart, rendered map[string]string) (docs []document, err error) {
	for _, crd := range c.CRDObjects() {
		more, err := p.parse(p.inChart(crd.Filename), crd.File.Data)
		if err != nil {
			return nil, err
		}
		docs = append(docs, more...)
	}
	for _, name := range sorted(rendered) {
		more, err := p.parse(p.inChart(name), []byte(rendered[name]))
		if err != nil {
			return nil, err
		}
		docs = append(docs, more...)
	}
	if len(docs) == 0 {
		return nil, errors.New("the chart renders no object; set values with " + flagValues + " or " + flagSet)
	}
	return docs, nil
}

// inChart returns the path of a template, whose name begins with the name of the chart.
func (p *Project) inChart(name string) string {
	_, within, _ := strings.Cut(name, "/")
	return p.rel(filepath.Join(p.path(p.options.Helm), filepath.FromSlash(within)))
}
