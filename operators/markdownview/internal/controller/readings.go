package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

// reading is the controller's summary of a content.
type reading struct {
	hash   string
	engine viewv1.Engine
	// err explains why the content makes no site.
	err      error
	title    string
	pages    int
	problems []book.Problem
	// count is the number of all problems, of which only the first are kept.
	count int
}

// readings caches the last reading of each site: sites are reconciled far more often
// than their pages change.
type readings struct {
	mu   sync.Mutex
	last map[types.NamespacedName]reading
}

// of reads the files of a site, unless the last reading was of the same files.
func (r *readings) of(site types.NamespacedName, engine viewv1.Engine, hash string, files []book.File) reading {
	r.mu.Lock()
	known := r.last[site]
	r.mu.Unlock()
	if known.hash == hash && known.engine == engine {
		return known
	}
	read := readBook(engine, hash, files)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[types.NamespacedName]reading{}
	}
	r.last[site] = read
	return read
}

func (r *readings) forget(site types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, site)
}

func readBook(engine viewv1.Engine, hash string, files []book.File) reading {
	b := book.Read(files)
	read := reading{hash: hash, engine: engine, err: acceptable(b, engine), title: b.Title, pages: len(b.Pages)}
	for _, p := range b.Problems {
		if p.MdBook && engine != viewv1.EngineMdBook {
			continue
		}
		if read.count++; len(read.problems) < maxProblems {
			read.problems = append(read.problems, p)
		}
	}
	return read
}
