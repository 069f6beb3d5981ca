package ship

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/ship/chart"
)

// Chart is the Helm chart that was made.
type Chart struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Dir is the chart as a folder, and Archive the same as helm package writes it.
	Dir     string `json:"dir"`
	Archive string `json:"archive"`
}

// tryChart makes the chart with the image in the manifests, so that a mistake in the person's files
// is found before anything is built or pushed.
func (s *shipment) tryChart(context.Context) error {
	if !s.Chart || s.manifests.image == "" {
		return nil
	}
	_, err := s.makeChart(s.manifests.image)
	return err
}

func (s *shipment) makeChart(image string) (*chart.Chart, error) {
	overlay, err := readOverlay(filepath.Join(s.Project.Dir, filepath.FromSlash(chart.Overlay)))
	if err != nil {
		return nil, err
	}
	return chart.Make(s.manifests.objects, chart.Options{
		Project: s.Project.Name, Image: image, Entrypoint: s.manifests.entrypoint, Tag: s.Reference.Identifier(),
		WatchNamespaces: s.WatchNamespaces, Overlay: overlay,
	})
}

// readOverlay returns the person's own files for the chart; none if there is no such folder.
func readOverlay(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == folder {
			return fs.SkipAll
		}
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files[filepath.ToSlash(name)] = data
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading your files for the chart: %w", err)
	}
	return files, nil
}

// writeChart writes the chart of what install.yaml installs.
func (s *shipment) writeChart(context.Context) error {
	if !s.Chart || s.result.Install == "" {
		return nil
	}
	c, err := s.makeChart(s.result.Image)
	if err != nil {
		return err
	}
	if tag := s.Reference.Identifier(); c.Version == chart.Unversioned {
		s.Observer.Note(fmt.Sprintf("the chart has the version %s, because the tag %s is not a semantic version such as v1.2.0; name one with --image", c.Version, tag))
	}
	folder := filepath.Join(s.Dir, "helm", c.Name)
	if err := replaceChart(folder, c); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	archive, err := c.Archive()
	if err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	s.result.Chart = &Chart{Name: c.Name, Version: c.Version, Dir: folder, Archive: folder + "-" + c.Version + ".tgz"}
	return writeFile(s.result.Chart.Archive, archive)
}

// replaceChart writes the files of a chart to a folder, without those of the last call. A folder
// that somebody else has made stays as it is.
func replaceChart(folder string, c *chart.Chart) error {
	old, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	switch _, stat := os.Lstat(folder); {
	case errors.Is(stat, fs.ErrNotExist):
	case err != nil || !chart.Made(old):
		return fmt.Errorf("%s is not a chart that koboshi ship has made; remove it, or name another folder with --output-dir", folder)
	}
	temporary := folder + ".tmp"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	for path, data := range c.Files {
		if err := writeFile(filepath.Join(temporary, filepath.FromSlash(path)), data); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	return os.Rename(temporary, folder)
}
