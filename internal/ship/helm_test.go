package ship_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/koboshi-dev/koboshi/internal/ship"
)

func TestTheChartFollowsTheImageAndThePersonsFiles(t *testing.T) {
	dir := write(t, map[string]string{
		"config/chart/values.yaml":         "replicas: 3\n",
		"config/chart/templates/note.yaml": "{{/* ours */}}\n",
	})
	var dist string
	h := &heard{}
	r := mustRun(t, dir, func(o *ship.Options) { o.Chart, o.Platforms, o.Observer, dist = true, both[:1], h, o.Dir })
	if r.Chart == nil || r.Chart.Dir != filepath.Join(dist, "helm", "sea") || r.Chart.Archive != filepath.Join(dist, "helm", "sea-0.1.0.tgz") {
		t.Fatalf("%+v", r.Chart)
	}
	if helpers := text(t, filepath.Join(r.Chart.Dir, "templates", "_helpers.tpl")); !strings.Contains(helpers, "{{ .Values.image.repository }}:0.1.0@"+r.Digest+"\n") {
		t.Errorf("the chart has another image than %s:\n%s", r.Image, helpers)
	}
	if values := text(t, filepath.Join(r.Chart.Dir, "values.yaml")); !strings.Contains(values, "\nreplicas: 3\n") {
		t.Errorf("the person's values are missing:\n%s", values)
	}
	archive := text(t, r.Chart.Archive)
	if err := os.RemoveAll(filepath.Join(dir, "config", "chart", "templates")); err != nil {
		t.Fatal(err)
	}
	again := mustRun(t, dir, func(o *ship.Options) { o.Chart, o.Platforms, o.Dir = true, both[:1], dist })
	if _, err := os.Stat(filepath.Join(r.Chart.Dir, "templates", "note.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file of the last call is left: %v", err)
	}
	if text(t, again.Chart.Archive) == archive {
		t.Error("the archive is that of the last call")
	}
	for _, note := range h.notes {
		if strings.Contains(note, "semantic version") {
			t.Error(note)
		}
	}
}

func TestATagThatIsNoVersionIsNoted(t *testing.T) {
	latest, err := name.NewTag("sea:latest")
	if err != nil {
		t.Fatal(err)
	}
	h := &heard{}
	r := mustRun(t, write(t, nil), func(o *ship.Options) {
		o.Chart, o.Platforms, o.Observer, o.Reference = true, both[:1], h, latest
	})
	if r.Chart.Version != "0.0.0" || !strings.Contains(strings.Join(h.notes, "\n"), "the tag latest is not a semantic version") {
		t.Errorf("%+v, %q", r.Chart, h.notes)
	}
}

func TestAMistakeInThePersonsFilesIsFoundBeforeTheBuild(t *testing.T) {
	h := &heard{}
	dir := write(t, map[string]string{"config/chart/values.yaml": "replica: 3\n"})
	_, err := run(t, dir, func(o *ship.Options) { o.Chart, o.Observer = true, h })
	if err == nil || !strings.Contains(err.Error(), "did you mean replicas?") || len(h.built) > 0 {
		t.Errorf("%v, built %q", err, h.built)
	}
}

func TestAChartOfSomebodyElseStays(t *testing.T) {
	dir := write(t, nil)
	var own string
	_, err := run(t, dir, func(o *ship.Options) {
		o.Chart, o.Platforms = true, both[:1]
		own = filepath.Join(o.Dir, "helm", "sea", "Chart.yaml")
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(own, []byte("name: sea\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "is not a chart that koboshi ship has made") || text(t, own) != "name: sea\n" {
		t.Errorf("%v", err)
	}
}
