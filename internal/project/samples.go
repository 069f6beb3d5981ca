package project

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// samples reads the samples in the order of the kustomization in config/samples, or all
// samples in the folder if it has no kustomization.
func (p *Project) samples() ([]scenario.Sample, error) {
	at := p.path(p.options.Samples)
	if p.options.Samples == "" {
		if at = p.samplesFolder(); at == "" {
			p.note("%s", noSamples)
			return nil, nil
		}
	}
	files, err := p.sampleFiles(at)
	if err != nil {
		return nil, fmt.Errorf("reading samples: %w; correct this, or name other samples with %s", err, flagSamples)
	}
	var samples []scenario.Sample
	for _, file := range files {
		docs, err := p.readFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading samples: %w", err)
		}
		sample := scenario.Sample{File: p.rel(file)}
		for _, d := range docs {
			if isCRD(d) {
				continue // in old layouts, the samples are beside their CRDs
			}
			sample.Objects = append(sample.Objects, d.Object)
		}
		if len(sample.Objects) > 0 {
			samples = append(samples, sample)
		}
	}
	if len(samples) == 0 {
		if p.options.Samples != "" {
			return nil, fmt.Errorf("%s %s contains no object; name a file or folder of samples, or omit the flag", flagSamples, p.options.Samples)
		}
		p.note("%s", noSamples)
	}
	return samples, nil
}

// samplesFolder returns the folder with the samples of kubebuilder's or of operator-sdk's old
// layout, or "".
func (p *Project) samplesFolder() string {
	for _, dir := range []string{"config/samples", "deploy/crds"} {
		if at := filepath.Join(p.Dir, filepath.FromSlash(dir)); exists(at) {
			return at
		}
	}
	return ""
}

const noSamples = "there are no samples in config/samples (" + flagSamples + " can name a file or folder of samples)"

func (p *Project) sampleFiles(at string) ([]string, error) {
	info, err := os.Stat(at)
	if err != nil || !info.IsDir() {
		return []string{at}, err
	}
	listed, err := p.listed(at)
	if err != nil {
		return nil, err
	}
	all, err := manifests(at)
	if err != nil || len(listed) == 0 {
		return all, err
	}
	for _, file := range all {
		if !slices.Contains(listed, file) {
			p.note("left out %s, because the kustomization in its folder does not list it", p.rel(file))
		}
	}
	return listed, nil
}

// listed returns the files that a folder's kustomization lists as resources.
func (p *Project) listed(dir string) ([]string, error) {
	file := kustomizationFile(dir)
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("%s: %w", p.rel(file), err)
	}
	var files []string
	for _, entry := range texts(content["resources"]) {
		at := filepath.Join(dir, entry)
		info, err := os.Stat(at)
		if err != nil {
			return nil, fmt.Errorf("%s: resources: %s: %w", p.rel(file), entry, errRemote)
		}
		if !info.IsDir() {
			files = append(files, at)
			continue
		}
		inner, err := manifests(at)
		if err != nil {
			return nil, err
		}
		files = append(files, inner...)
	}
	return files, nil
}
