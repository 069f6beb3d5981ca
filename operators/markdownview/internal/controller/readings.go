package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

// reading is a summary of the content of a site.
type reading struct {
	hash   string
	engine viewv1.Engine
	// err explains why no site can be made from the content.
	err      error
	title    string
	pages    int
	problems []book.Problem
	// count is the number of all problems. Only the first maxProblems problems are kept.
	count int
}

// readings caches the last reading of each site, because sites are reconciled far more
// often than their pages change.
type readings struct {
	mu   sync.Mutex
	last map[types.NamespacedName]reading
}

// of returns the reading of a site. The files are read only if they have changed since the last
// reading.
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
