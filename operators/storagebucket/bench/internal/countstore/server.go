// Package countstore is a minimal object store for the bench. It answers the few S3
// requests that a health check sends, each after a given delay, and records the time
// and the bucket of each request. It can pretend to be down: it then accepts, counts
// and resets each connection. A reset costs a client the same as a refused connection,
// but refused connections could not be counted.
package countstore

import (
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// BucketName returns the name of the store's bucket with the given index.
func BucketName(index int) string { return fmt.Sprintf("bench-%06d", index) }

// bucketIndex is the inverse of BucketName.
func bucketIndex(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "bench-")
	index, err := strconv.Atoi(digits)
	return index, ok && err == nil && index >= 0 && BucketName(index) == name
}

// Server is the store. Serve it with ServeOn.
type Server struct {
	// Buckets is the number of buckets, named by BucketName.
	Buckets int
	// Delay is the time between a request and its response.
	Delay time.Duration

	journal Journal
	conns   connections
}

// ServeOn serves requests until the listener is closed.
func (s *Server) ServeOn(l net.Listener) error {
	server := &http.Server{Handler: s, ConnState: s.conns.track, ReadHeaderTimeout: time.Minute}
	return server.Serve(&gate{Listener: l, server: s})
}

// gate resets connections while the store pretends to be down.
type gate struct {
	net.Listener
	server *Server
}

// Accept returns the next connection that is not reset.
func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !g.server.conns.down() {
			return conn, nil
		}
		g.server.journal.add(Refused)
		reset(conn)
	}
}

// ServeHTTP answers one request of the S3 API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.conns.down() {
		// The store went down just after the connection was accepted.
		s.journal.add(Refused)
		panic(http.ErrAbortHandler)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	index, known := bucketIndex(name)
	switch {
	case name == "":
		s.journal.add(OfStore)
	case known && index < s.Buckets:
		s.journal.add(int32(index))
	default:
		s.journal.add(Unknown)
	}
	if !wait(r, s.Delay) {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	s.answer(w, r, name, known && index < s.Buckets)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, bucket string, exists bool) {
	switch {
	case r.Header.Get("Authorization") == "":
		refuse(w, r, http.StatusForbidden, "AccessDenied")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		refuse(w, r, http.StatusNotImplemented, "NotImplemented")
	case bucket == "":
		// An empty list of buckets is enough to show that the store is up.
		writeXML(w, r, http.StatusOK, listBuckets{})
	case !exists:
		refuse(w, r, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodHead:
		w.Header().Set("X-Amz-Bucket-Region", "us-east-1")
		w.WriteHeader(http.StatusOK)
	case r.URL.Query().Get("list-type") == "2":
		writeXML(w, r, http.StatusOK, listObjects{Name: bucket, MaxKeys: 1})
	default:
		refuse(w, r, http.StatusNotImplemented, "NotImplemented")
	}
}

type listBuckets struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListAllMyBucketsResult"`
	Owner   struct{ ID string }
	Buckets struct{}
}

type listObjects struct {
	XMLName     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name        string
	KeyCount    int
	MaxKeys     int
	IsTruncated bool
}

type failure struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
}

func refuse(w http.ResponseWriter, r *http.Request, status int, code string) {
	writeXML(w, r, status, failure{Code: code})
}

func writeXML(w http.ResponseWriter, r *http.Request, status int, body any) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_ = xml.NewEncoder(w).Encode(body) // the client may be gone
	}
}

// wait returns false if the client disconnected before the time was over.
func wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
