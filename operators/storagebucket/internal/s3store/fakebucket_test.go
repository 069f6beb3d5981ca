package s3store

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// fakeBucket answers S3 requests for one bucket. fakeBucket covers cases that the real server does
// not: it stores configuration documents exactly as they are sent, and sends listings in tiny
// pages.
type fakeBucket struct {
	// page is the maximum number of items on a page of a listing.
	page int
	// gaps makes an empty page come before each page with items.
	gaps bool
	// plain lists keys without encoding, whatever encoding is requested.
	plain bool
	// refusals are the codes with which the fake refuses to delete objects, keyed by
	// the object's key.
	refusals map[string]string
	// drops are documents that are accepted and then dropped.
	drops []string

	mu        sync.Mutex
	documents map[string]string
	versions  []fakeVersion
	uploads   []fakeVersion
	headers   http.Header
	sent      []string
}

// fakeVersion is a version, a delete marker or an upload.
type fakeVersion struct {
	key, id string
	marker  bool
}

// absentCode holds the S3 error code for each missing document.
var absentCode = map[string]string{
	"lifecycle":         codeNoLifecycle,
	"encryption":        codeNoEncryption,
	"publicAccessBlock": codeNoPublicAccessBlock,
	"policy":            codeNoPolicy,
	"cors":              codeNoCORS,
	"tagging":           "NoSuchTagSet",
	"object-lock":       codeNoObjectLock,
	"versioning":        "",
}

func (f *fakeBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	f.headers = r.Header
	if len(body) > 0 {
		f.sent = append(f.sent, string(body))
	}
	query := r.URL.Query()
	for name, absent := range absentCode {
		if query.Has(name) {
			f.document(w, r.Method, name, absent, string(body))
			return
		}
	}
	switch {
	case r.Method == http.MethodPost && query.Has("delete"):
		f.deleteBatch(w, body)
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		f.uploads = slices.DeleteFunc(f.uploads, func(u fakeVersion) bool { return u.id == query.Get("uploadId") })
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if code := f.remove(key, query.Get("versionId")); code != "" {
			fail(w, http.StatusForbidden, code)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case query.Has("versions"):
		f.list(w, query, "ListVersionsResult", f.versions)
	case query.Has("uploads"):
		f.list(w, query, "ListMultipartUploadsResult", f.uploads)
	case r.Method == http.MethodGet:
		current := slices.DeleteFunc(slices.Clone(f.versions), func(v fakeVersion) bool { return v.marker })
		f.list(w, query, "ListBucketResult", current)
	}
}

func fail(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>REQUEST-ID</Message></Error>", code)
}

func (f *fakeBucket) document(w http.ResponseWriter, method, name, absent, body string) {
	switch method {
	case http.MethodPut:
		if !slices.Contains(f.drops, name) {
			f.set(name, body)
		}
	case http.MethodDelete:
		delete(f.documents, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		text, ok := f.documents[name]
		switch {
		case ok:
			_, _ = io.WriteString(w, text)
		case absent == "":
			_, _ = io.WriteString(w, "<VersioningConfiguration/>")
		default:
			fail(w, http.StatusNotFound, absent)
		}
	}
}

func (f *fakeBucket) set(name, text string) {
	if f.documents == nil {
		f.documents = map[string]string{}
	}
	f.documents[name] = text
}

// write replaces a document, as another client would.
func (f *fakeBucket) write(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.set(name, text)
}

// add writes a version.
func (f *fakeBucket) add(v fakeVersion) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.versions = append(f.versions, v)
}

// lastSent returns the body of the last request that had one.
func (f *fakeBucket) lastSent() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sent) == 0 {
		return ""
	}
	return f.sent[len(f.sent)-1]
}

func (f *fakeBucket) lastHeader(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.headers.Get(name)
}

// list writes a page. A marker is a position in the list. If f.gaps is true, a marker that
// ends in a dot means that the empty page has been sent.
func (f *fakeBucket) list(w http.ResponseWriter, query url.Values, root string, items []fakeVersion) {
	marker := query.Get("key-marker") + query.Get("continuation-token")
	at, _ := strconv.Atoi(strings.TrimSuffix(marker, "."))
	page, next := items[min(at, len(items)):], ""
	limit := f.page
	for _, name := range []string{"max-keys", "max-uploads"} {
		if n, err := strconv.Atoi(query.Get(name)); err == nil {
			limit = min(limit, n)
		}
	}
	switch {
	case f.gaps && !strings.HasSuffix(marker, "."):
		page, next = nil, strconv.Itoa(at)+"."
	case len(page) > limit:
		page, next = page[:limit], strconv.Itoa(at+limit)
	}
	name := func(key string) string { return key }
	_, _ = fmt.Fprintf(w, "<%s><Name>photos</Name><Bucket>photos</Bucket>", root)
	if !f.plain {
		_, _ = io.WriteString(w, "<EncodingType>url</EncodingType>")
		name = url.QueryEscape
	}
	if next != "" {
		_, _ = fmt.Fprintf(w, "<IsTruncated>true</IsTruncated><NextKeyMarker>%s</NextKeyMarker>"+
			"<NextContinuationToken>%s</NextContinuationToken>", next, next)
	}
	for _, v := range page {
		element := map[string]string{"ListVersionsResult": "Version", "ListMultipartUploadsResult": "Upload", "ListBucketResult": "Contents"}[root]
		if v.marker {
			element = "DeleteMarker"
		}
		_, _ = fmt.Fprintf(w, "<%s><Key>%s</Key><VersionId>%s</VersionId><UploadId>%s</UploadId><Size>3</Size></%s>",
			element, name(v.key), v.id, v.id, element)
	}
	_, _ = fmt.Fprintf(w, "</%s>", root)
}

func (f *fakeBucket) deleteBatch(w http.ResponseWriter, body []byte) {
	var batch struct {
		Object []struct {
			Key       string
			VersionID string `xml:"VersionId"`
		}
	}
	if err := xml.Unmarshal(body, &batch); err != nil {
		fail(w, http.StatusBadRequest, "MalformedXML")
		return
	}
	_, _ = io.WriteString(w, "<DeleteResult>")
	for _, o := range batch.Object {
		if code := f.remove(o.Key, o.VersionID); code != "" {
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
		}
	}
	_, _ = io.WriteString(w, "</DeleteResult>")
}

// remove returns the code with which the store refuses the deletion.
func (f *fakeBucket) remove(key, id string) string {
	if code := f.refusals[key]; code != "" {
		return code
	}
	f.versions = slices.DeleteFunc(f.versions, func(v fakeVersion) bool {
		return v.key == key && (v.id == id || id == "")
	})
	return ""
}
