// Package committed reads the CRDs and samples of a project as they were committed, without
// touching the work tree.
package committed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/manifest/compat"
	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// samplesFolder holds the samples of projects with kubebuilder's layout.
const samplesFolder = "config/samples"

// A RefError reports that git cannot find the repository or the revision.
type RefError struct{ message string }

func (e *RefError) Error() string { return e.message }

// A Revision is a commit, seen from the folder of a project.
type Revision struct {
	dir  string // the project's folder
	name string // as the user wrote it
	hash string
}

// Open finds the commit that a name refers to.
func Open(ctx context.Context, dir, name string) (*Revision, error) {
	r := &Revision{dir: dir, name: name}
	if _, err := r.git(ctx, "rev-parse", "--git-dir"); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, errors.New("--against needs git, which is not on the PATH; install it")
		}
		// git may also fail for another reason, such as a folder that belongs to another user.
		return nil, &RefError{fmt.Sprintf("%s is not in a git repository that can be read; --against needs the history of the project: %s", dir, firstLine(err))}
	}
	hash, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if err != nil {
		return nil, &RefError{fmt.Sprintf("git finds no revision %q in %s; name a tag, a branch or a commit, and fetch it first if the clone is shallow", name, dir)}
	}
	r.hash = strings.TrimSpace(string(hash))
	return r, nil
}

// firstLine returns the first line of an error.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// git runs git in the project's folder.
func (r *Revision) git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.dir}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// files returns the paths of the YAML files in a folder, relative to the project's folder.
func (r *Revision) files(ctx context.Context, folder string) (files []string, err error) {
	out, err := r.git(ctx, "ls-tree", "-z", "--name-only", r.hash, "--", "./"+strings.TrimSuffix(folder, "/")+"/")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
			files = append(files, name)
		}
	}
	return files, nil
}

func (r *Revision) read(ctx context.Context, file string) ([]byte, error) {
	return r.git(ctx, "show", r.hash+":./"+file)
}

// CRDs returns the CRDs in folders of the project.
func (r *Revision) CRDs(ctx context.Context, folders []string) (all []compat.Definition, err error) {
	for _, folder := range folders {
		files, err := r.files(ctx, folder)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			data, err := r.read(ctx, file)
			if err != nil {
				return nil, err
			}
			found, err := ParseCRDs(file, data)
			if err != nil {
				return nil, fmt.Errorf("at %s: %w; compare with a revision in which it is valid", r.name, err)
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// Samples returns the samples, and a note for each file that cannot be read.
func (r *Revision) Samples(ctx context.Context) (all []compat.Sample, notes []string, err error) {
	files, err := r.files(ctx, samplesFolder)
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		if path.Base(file) == "kustomization.yaml" || path.Base(file) == "kustomization.yml" {
			continue
		}
		data, err := r.read(ctx, file)
		if err != nil {
			return nil, nil, err
		}
		objects, err := parse(file, data)
		if err != nil {
			notes = append(notes, fmt.Sprintf("at %s: %v, so it was not tried", r.name, err))
		}
		for _, object := range objects {
			all = append(all, compat.Sample{File: file, Object: object})
		}
	}
	return all, notes, nil
}

// Project returns the file PROJECT, or nil if there is none that can be read.
func (r *Revision) Project(ctx context.Context) *projectfile.File {
	data, err := r.read(ctx, projectfile.Name)
	if err != nil {
		return nil
	}
	file, err := projectfile.Parse(data)
	if err != nil {
		return nil
	}
	return file
}

// ParseCRDs returns the CRDs among the documents of a file.
func ParseCRDs(file string, data []byte) (all []compat.Definition, err error) {
	objects, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if object.GetAPIVersion() != "apiextensions.k8s.io/v1" {
			return nil, fmt.Errorf("%s: CustomResourceDefinition %s has the API version %s; only apiextensions.k8s.io/v1 can be compared", file, object.GetName(), object.GetAPIVersion())
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
			return nil, fmt.Errorf("%s: CustomResourceDefinition %s: %w", file, object.GetName(), err)
		}
		all = append(all, compat.Definition{File: file, CRD: crd})
	}
	return all, nil
}

// parse returns the objects in a YAML file.
func parse(file string, data []byte) (all []*unstructured.Unstructured, err error) {
	reader := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for number := 1; ; number++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(text, &object.Object)
		}
		if err != nil {
			return all, fmt.Errorf("%s: document %d: %w", file, number, err)
		}
		if object.GetKind() != "" {
			all = append(all, object)
		}
	}
}
