package scenario

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEveryGeneratedScenarioHasTheFileOfItsSample(t *testing.T) {
	samples := readSamples(t, "storagebucket")
	all := scenariosOf(t, "storagebucket")
	files := FilesOf(samples, all)
	for _, s := range all {
		i := slices.IndexFunc(samples, func(sample Sample) bool { return sample.File == files[s.Name] })
		if i < 0 {
			t.Errorf("%s has the file %q", s.Name, files[s.Name])
			continue
		}
		created := firstApplied(s)
		if !slices.ContainsFunc(samples[i].Objects, func(o unstructured.Unstructured) bool {
			return o.GetKind() == created.GetKind() && o.GetName() == created.GetName()
		}) {
			t.Errorf("%s: %s has no %s %s", s.Name, files[s.Name], created.GetKind(), created.GetName())
		}
	}
	if none := FilesOf(nil, all); len(none) != 0 {
		t.Errorf("without samples, the files are %v", none)
	}
}
