package crash

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// side determines when the operator is killed, relative to a write.
type side string

const (
	// neither means that the operator is not killed.
	neither side = "no kill"
	// beforeEffect means that the request never reaches the server.
	beforeEffect side = "before write"
	// afterEffect means that the server has carried out the request, but the response is
	// lost.
	afterEffect side = "after write"
	// underWay means that the request is held, and reaches the server only when
	// blade.deliver is called, long after the operator has died.
	underWay side = "write under way"
)

var bothSides = []side{beforeEffect, afterEffect}

// moment reports whether the operator dies at a write of this kind, which is the n-th write
// of any kind since the count started.
type moment func(n int, kind string) bool

func nth(at int) moment { return func(n int, _ string) bool { return n == at } }

func first(kind string) moment { return func(_ int, k string) bool { return k == kind } }

// blade kills the operator at one of its writes.
type blade struct {
	kill func()

	mu sync.Mutex
	// at is nil if the operator is not to be killed.
	at      moment
	side    side
	falling bool
	writes  []string
	last    time.Time
	struck  chan struct{}
	release chan struct{}
	// late is the status with which the server answered the held request.
	late chan int
}

// arm starts the count of writes. It returns a channel that is closed once the operator is
// dead.
func (b *blade) arm(at moment, s side) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at, b.side, b.falling, b.writes, b.last = at, s, false, nil, time.Now()
	b.struck, b.release, b.late = make(chan struct{}), make(chan struct{}), make(chan int, 1)
	return b.struck
}

// disarm prevents further kills. It reports whether the operator was killed.
func (b *blade) disarm() (struck bool) {
	b.mu.Lock()
	b.at = nil
	falling := b.falling
	b.mu.Unlock()
	if falling {
		<-b.struck
	}
	return falling
}

// deliver lets the held request reach the server, and returns the status of
// the response.
func (b *blade) deliver() int {
	close(b.release)
	return <-b.late
}

// count counts a write, and returns the side of this write on which the operator must die.
func (b *blade) count(kind string) side {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writes = append(b.writes, kind)
	b.last = time.Now()
	if b.at == nil || !b.at(len(b.writes), kind) {
		return neither
	}
	b.at, b.falling = nil, true
	return b.side
}

// strike kills the operator. It returns once the operator is dead.
func (b *blade) strike() {
	b.kill()
	close(b.struck)
}

// seen returns the writes since the count started.
func (b *blade) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.writes)
}

// quietFor returns the time since the last write.
func (b *blade) quietFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.last)
}

// kubeWrite names a write to the API server; it returns "" for reads, and for
// writes that do not concern a bucket.
func kubeWrite(r *http.Request) string {
	if r.Method == http.MethodGet {
		return ""
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for _, exempt := range []string{"events", "leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"} {
		if slices.Contains(path, exempt) {
			return ""
		}
	}
	// apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE
	if len(path) >= 8 {
		return r.Method + " " + path[5] + "/" + path[7]
	}
	if len(path) >= 6 {
		return r.Method + " " + path[5]
	}
	return r.Method + " " + r.URL.Path
}

// storeWrite names a write to the store; it returns "" for reads.
func storeWrite(r *http.Request) string {
	if r.Method != http.MethodPut && r.Method != http.MethodPost && r.Method != http.MethodDelete {
		return ""
	}
	bucket, key, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	for _, part := range []string{"tagging", "policy", "cors", "versioning", "delete", "uploadId", "versionId"} {
		if query.Has(part) {
			return r.Method + " ?" + part
		}
	}
	switch {
	case key != "":
		return r.Method + " object"
	case bucket != "":
		return r.Method + " bucket"
	default:
		return r.Method + " store"
	}
}

func isCreate(r *http.Request) bool { return storeWrite(r) == "PUT bucket" }
