package countstore

import (
	"sync"
	"time"
)

// Arrival.Bucket has one of these values if the request was not for a bucket of the store.
const (
	// OfStore is a request to the store itself, such as a request for the list of
	// buckets.
	OfStore int32 = -1
	// Refused is a connection that was reset because the store was down.
	Refused int32 = -2
	// Unknown is a request for a bucket that does not exist.
	Unknown int32 = -3
)

// Arrival is one request at the store.
type Arrival struct {
	// At is the time of arrival, in nanoseconds since 1970.
	At int64 `json:"t"`
	// Bucket is the index of the requested bucket, or OfStore, Refused or Unknown.
	Bucket int32 `json:"b"`
}

// Journal holds all arrivals in order. It is safe for concurrent use.
type Journal struct {
	mu    sync.Mutex
	start time.Time
	all   []Arrival
}

func (j *Journal) add(bucket int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, Arrival{At: j.nanos(), Bucket: bucket})
}

// nanos returns the time, from a monotonic clock. The caller must hold j.mu.
func (j *Journal) nanos() int64 {
	if j.start.IsZero() {
		j.start = time.Now()
	}
	return j.start.UnixNano() + int64(time.Since(j.start))
}

// from returns the arrivals from the given index on.
func (j *Journal) from(index int) []Arrival {
	j.mu.Lock()
	defer j.mu.Unlock()
	if index < 0 || index > len(j.all) {
		return nil
	}
	return append([]Arrival(nil), j.all[index:]...)
}
