package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

// emptyAll calls Empty until it is done, and returns the number of removed
// items and the number of calls.
func emptyAll(t *testing.T, s *Store, bucket string, limit int) (removed, calls int) {
	t.Helper()
	for done := false; !done; {
		if calls++; calls > 200 {
			t.Fatal("Empty does not get done")
		}
		n, d, err := s.Empty(t.Context(), bucket, limit)
		must(t, err)
		if n > limit {
			t.Errorf("removed %d, more than %d", n, limit)
		}
		removed, done = removed+n, d
	}
	return removed, calls
}

// expectGone checks that nothing is left, according to the store itself.
func expectGone(t *testing.T, s *Store, bucket string) {
	t.Helper()
	if empty, err := s.IsEmpty(t.Context(), bucket); err != nil || !empty {
		t.Errorf("empty %t, %v", empty, err)
	}
	must(t, s.Delete(t.Context(), bucket))
}

func TestThousandsOfVersionsAndUploadsAreEmptiedInBoundedBatches(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, true)
	const objects, rewritten, deleted, uploads = 2500, 200, 100, 40
	inParallel(t, objects, func(i int) error {
		key := fmt.Sprintf("dir%d/object%d", i%7, i)
		err := write(t.Context(), s, bucket, key)
		if i < rewritten {
			err = errors.Join(err, write(t.Context(), s, bucket, key))
		}
		if i < deleted {
			err = errors.Join(err, erase(t.Context(), s, bucket, key))
		}
		if i < uploads {
			err = errors.Join(err, upload(t.Context(), s, bucket, key))
		}
		return err
	})
	const limit, all = 700, objects + rewritten + deleted + uploads
	removed, calls := emptyAll(t, s, bucket, limit)
	if removed != all {
		t.Errorf("removed %d, want %d", removed, all)
	}
	if want := all/limit + 1; calls != want {
		t.Errorf("%d calls, want %d", calls, want)
	}
	expectGone(t, s, bucket)
}

// inParallel calls f for 0 to n-1, a few at a time.
func inParallel(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	work := make(chan int)
	for range 8 {
		wg.Go(func() {
			for i := range work {
				if err := f(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	wg.Wait()
}

func TestKeysOfAllKindsAreRemoved(t *testing.T) {
	keys := []string{
		"plain", "with space", "a+b", "a%2Bb", "a%20b", "ü/日本", "dir/", "dir/deep/er", "a&b<c>\"d\"'", "new\nline", "tab\t",
		"control\x01key", "star*", "semi;colon", "#hash", "question?mark", "back\\slash", "=", strings.Repeat("k", 200),
	}
	t.Run("real", func(t *testing.T) {
		s := gatewayStore(t)
		for _, versioned := range []bool{false, true} {
			bucket := newBucket(t, s, versioned)
			for _, key := range keys {
				// The real server lists a key with a control character under another name.
				if key != "control\x01key" {
					put(t, s, bucket, key)
				}
			}
			if removed, _ := emptyAll(t, s, bucket, 1000); removed < len(keys)-1 {
				t.Errorf("removed %d of %d", removed, len(keys)-1)
			}
			expectGone(t, s, bucket)
		}
	})
	t.Run("fake", func(t *testing.T) {
		fake := &fakeBucket{page: 1000}
		for _, key := range keys {
			fake.versions = append(fake.versions, fakeVersion{key: key, id: "1"})
		}
		s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
		if removed, _ := emptyAll(t, s, "photos", 1000); removed != len(keys) || len(fake.versions) > 0 {
			t.Errorf("removed %d, left %v", removed, fake.versions)
		}
	})
}

func TestListingsInTinyPagesWithGapsAreReadToTheirEnd(t *testing.T) {
	for _, gaps := range []bool{false, true} {
		for _, plain := range []bool{false, true} {
			fake := &fakeBucket{page: 3, gaps: gaps, plain: plain}
			for i := range 20 {
				fake.versions = append(fake.versions, fakeVersion{key: fmt.Sprint("key", i/2), id: fmt.Sprint(i), marker: i%5 == 0})
				fake.uploads = append(fake.uploads, fakeVersion{key: "up", id: fmt.Sprint("u", i)})
			}
			s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
			if empty, err := s.IsEmpty(t.Context(), "photos"); err != nil || empty {
				t.Errorf("gaps %t: empty %t, %v", gaps, empty, err)
			}
			if removed, calls := emptyAll(t, s, "photos", 7); removed != 40 || calls != 6 {
				t.Errorf("gaps %t: removed %d with %d calls", gaps, removed, calls)
			}
			if empty, err := s.IsEmpty(t.Context(), "photos"); err != nil || !empty {
				t.Errorf("gaps %t: empty %t, %v", gaps, empty, err)
			}
		}
	}
}

func TestEachThingABucketCanHoldKeepsItFromBeingEmpty(t *testing.T) {
	s := gatewayStore(t)
	for name, fill := range map[string]func(bucket string){
		"an object": func(bucket string) { put(t, s, bucket, "cat") },
		"an upload": func(bucket string) { must(t, upload(t.Context(), s, bucket, "cat")) },
		"versions behind a delete marker": func(bucket string) {
			put(t, s, bucket, "cat")
			must(t, erase(t.Context(), s, bucket, "cat"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := newBucket(t, s, true)
			if empty, err := s.IsEmpty(t.Context(), bucket); err != nil || !empty {
				t.Errorf("a new bucket: empty %t, %v", empty, err)
			}
			fill(bucket)
			if empty, err := s.IsEmpty(t.Context(), bucket); err != nil || empty {
				t.Errorf("empty %t, %v", empty, err)
			}
			emptyAll(t, s, bucket, 10)
			expectGone(t, s, bucket)
		})
	}
	t.Run("a delete marker", func(t *testing.T) {
		fake := &fakeBucket{page: 10, versions: []fakeVersion{{key: "cat", id: "1", marker: true}}}
		s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
		if empty, err := s.IsEmpty(t.Context(), "photos"); err != nil || empty {
			t.Errorf("empty %t, %v", empty, err)
		}
	})
}

func TestNothingIsTakenForEmptyThatCouldNotBeSeen(t *testing.T) {
	for _, query := range []string{"versions", "list-type", "uploads"} {
		for _, tc := range []struct {
			name  string
			fault faultserver.Fault
			want  Reason
		}{
			{"denied", faultserver.S3Error(403, "AccessDenied"), ReasonAccessDenied},
			{"no bucket", faultserver.S3Error(404, "NoSuchBucket"), ReasonBucketNotFound},
			{"a bare 404", faultserver.Status(404), ReasonUnexpectedResponse},
			{"a web page", faultserver.Garbage(200), ReasonUnexpectedResponse},
			{"broken", faultserver.TruncatedBody(200), ReasonEndpointUnreachable},
			{"throttled", faultserver.Throttle(""), ReasonThrottled},
		} {
			t.Run(query+" "+tc.name, func(t *testing.T) {
				server := faultserver.Start(t, faultserver.Behind(&fakeBucket{page: 10}))
				server.Script(faultserver.Rule{Query: query, Fault: tc.fault})
				s := storeAt(t, server)
				empty, err := s.IsEmpty(t.Context(), "photos")
				expectReason(t, err, tc.want)
				_, done, err := s.Empty(t.Context(), "photos", 10)
				expectReason(t, err, tc.want)
				if empty || done {
					t.Errorf("empty %t, done %t", empty, done)
				}
			})
		}
	}
}

func TestAStoreThatDoesLessIsEmptiedAllTheSame(t *testing.T) {
	unsupported := faultserver.S3Error(501, "NotImplemented")
	for _, tc := range []struct {
		name  string
		rules []faultserver.Rule
	}{
		{"no versions", []faultserver.Rule{{Query: "versions", Fault: unsupported}}},
		{"an empty response to the request for versions", []faultserver.Rule{{Query: "versions", Fault: faultserver.Status(200)}}},
		{"no uploads", []faultserver.Rule{{Query: "uploads", Fault: unsupported}}},
		{"no batches", []faultserver.Rule{{Method: http.MethodPost, Fault: unsupported}}},
		{"none of them", []faultserver.Rule{{Query: "versions", Fault: faultserver.Status(501)},
			{Query: "uploads", Fault: faultserver.Status(405)}, {Method: http.MethodPost, Fault: unsupported}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := &fakeBucket{page: 4, versions: []fakeVersion{{key: "a"}, {key: "b+ c"}, {key: "c"}, {key: "d"}, {key: "e"}}}
			server := faultserver.Start(t, faultserver.Behind(fake))
			server.Script(tc.rules...)
			s := storeAt(t, server)
			if removed, _ := emptyAll(t, s, "photos", 3); removed != 5 || len(fake.versions) > 0 {
				t.Errorf("removed %d, left %v", removed, fake.versions)
			}
			if empty, err := s.IsEmpty(t.Context(), "photos"); err != nil || !empty {
				t.Errorf("empty %t, %v", empty, err)
			}
		})
	}
}

func TestLockedObjectsAreNamedAndKept(t *testing.T) {
	s := gatewayStore(t)
	bucket := newName(t)
	must(t, s.Create(t.Context(), bucket, CreateOptions{ObjectLock: true}))
	until := time.Now().Add(time.Hour)
	var locked []types.ObjectIdentifier
	for i := range 5 {
		in := &s3.PutObjectInput{Bucket: &bucket, Key: aws.String(fmt.Sprint("key", i)), Body: strings.NewReader("x")}
		if i < 2 {
			in.ObjectLockMode, in.ObjectLockRetainUntilDate = types.ObjectLockModeGovernance, &until
		}
		out, err := s.client.PutObject(t.Context(), in)
		must(t, err)
		if i < 2 {
			locked = append(locked, types.ObjectIdentifier{Key: in.Key, VersionId: out.VersionId})
		}
	}
	// Empty must stop before it removes this upload.
	must(t, upload(t.Context(), s, bucket, "up"))
	for _, want := range []int{3, 0} {
		removed, done, err := s.Empty(t.Context(), bucket, 100)
		expectReason(t, err, ReasonAccessDenied)
		if removed != want || done || err == nil || !strings.Contains(err.Error(), "refused to delete 2 of") {
			t.Errorf("removed %d, done %t: %v", removed, done, err)
		}
	}
	for _, o := range locked {
		_, err := s.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{
			Bucket: &bucket, Key: o.Key, VersionId: o.VersionId, BypassGovernanceRetention: aws.Bool(true),
		})
		must(t, err)
	}
	if removed, _ := emptyAll(t, s, bucket, 100); removed != 1 {
		t.Errorf("removed %d, want the upload", removed)
	}
	expectGone(t, s, bucket)
}

func TestRefusalsOfSingleObjectsAreClassed(t *testing.T) {
	for _, tc := range []struct {
		name    string
		codes   map[string]string
		want    Reason
		message string
		removed int
	}{
		{"protected", map[string]string{"a": "AccessDenied", "b": "InvalidRequest"}, ReasonAccessDenied, "refused to delete 2 of 3", 1},
		{"protection comes before failure", map[string]string{"a": "AccessDenied", "b": "InternalError"}, ReasonAccessDenied, "refused to delete 1 of 3", 1},
		{"a failure", map[string]string{"a": "InternalError"}, ReasonServerError, "failed to delete 1 of 3", 2},
		{"too fast", map[string]string{"a": "SlowDown", "b": "SlowDown"}, ReasonThrottled, "failed to delete 2 of 3", 1},
		{"a code nobody knows", map[string]string{"a": testSecret}, ReasonUnexpectedResponse, "failed to delete 1 of 3", 2},
		{"an invalid version", map[string]string{"a": "InvalidArgument"}, ReasonUnexpectedResponse, "failed to delete 1 of 3", 2},
		{"gone meanwhile", map[string]string{"a": "NoSuchKey", "b": "NoSuchVersion"}, "", "", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := &fakeBucket{page: 10, refusals: tc.codes, versions: []fakeVersion{{key: "a", id: "1"}, {key: "b", id: "1"}, {key: "c", id: "1"}}}
			_, removed, err := storeAt(t, faultserver.Start(t, faultserver.Behind(fake))).emptySome(t.Context(), "photos", 10)
			expectReason(t, err, tc.want)
			if removed != tc.removed || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("removed %d: %v", removed, err)
			}
		})
	}
}

func TestAStoreThatRefusesSingleDeletionsIsClassed(t *testing.T) {
	fake := &fakeBucket{page: 10, refusals: map[string]string{"a": "AccessDenied"}, versions: []fakeVersion{{key: "a"}, {key: "b"}}}
	server := faultserver.Start(t, faultserver.Behind(fake))
	server.Script(faultserver.Rule{Method: http.MethodPost, Fault: faultserver.Status(501)})
	removed, done, err := storeAt(t, server).Empty(t.Context(), "photos", 10)
	expectReason(t, err, ReasonAccessDenied)
	if removed != 1 || done {
		t.Errorf("removed %d, done %t", removed, done)
	}
}

func TestEmptyGoesOnAfterItBrokeOff(t *testing.T) {
	for _, tc := range []struct {
		name string
		rule faultserver.Rule
	}{
		{"the answer to a deletion is lost", faultserver.Rule{Method: http.MethodPost, Query: "delete", Skip: 1, Times: 1, Fault: faultserver.LoseAnswer()}},
		{"a deletion is lost", faultserver.Rule{Method: http.MethodPost, Query: "delete", Skip: 1, Times: 1, Fault: faultserver.Reset()}},
		{"a listing is lost", faultserver.Rule{Method: http.MethodGet, Query: "versions", Skip: 1, Times: 1, Fault: faultserver.TruncatedBody(200)}},
		{"the answer to an abort is lost", faultserver.Rule{Method: http.MethodDelete, Skip: 2, Times: 1, Fault: faultserver.LoseAnswer()}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, server := beforeGateway(t)
			bucket := newBucket(t, s, true)
			for i := range 30 {
				put(t, s, bucket, fmt.Sprint("key", i))
			}
			for i := range 5 {
				must(t, upload(t.Context(), s, bucket, fmt.Sprint("up", i)))
			}
			server.Script(tc.rule)
			broke := 0
			for done := false; !done; {
				var err error
				_, done, err = s.Empty(t.Context(), bucket, 8)
				if err != nil {
					expectReason(t, err, ReasonEndpointUnreachable)
					if broke++; broke > 1 {
						t.Fatal(err)
					}
				}
			}
			if broke != 1 {
				t.Errorf("%d calls failed, want 1", broke)
			}
			expectGone(t, s, bucket)
		})
	}
}

func TestAWriterDuringEmptyLosesTheRaceOrIsSeen(t *testing.T) {
	t.Run("real", func(t *testing.T) {
		s := gatewayStore(t)
		bucket := newBucket(t, s, true)
		// The real server sometimes fails on a key that is being deleted and written at the
		// same moment: either the deletion or the write fails.
		race(t, s, bucket, func(w, i int) { _ = write(t.Context(), s, bucket, fmt.Sprintf("w%d-%d", w, i%20)) },
			ReasonServerError, ReasonUnexpectedResponse)
		expectGone(t, s, bucket)
	})
	t.Run("fake", func(t *testing.T) {
		fake := &fakeBucket{page: 7}
		server := faultserver.Start(t, faultserver.Behind(fake), faultserver.WithoutRecord())
		s := storeAt(t, server)
		race(t, s, "photos", func(w, i int) {
			fake.add(fakeVersion{key: fmt.Sprintf("w%d-%d", w, i%20), id: fmt.Sprint(i)})
			// The call of Find makes the writer as slow as a writer over the network.
			_, _ = s.Find(t.Context(), "photos")
		})
	})
}

// race empties a bucket while three writers fill it, and once more after they
// have stopped.
func race(t *testing.T, s *Store, bucket string, write func(writer, i int), tolerated ...Reason) {
	t.Helper()
	var stop atomic.Bool
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				write(w, i)
			}
		})
	}
	removed := 0
	for range 20 {
		n, _, err := s.Empty(t.Context(), bucket, 20)
		if err != nil && !slices.Contains(tolerated, ReasonOf(err)) {
			t.Errorf("emptying: %v", err)
		}
		removed += n
	}
	stop.Store(true)
	writers.Wait()
	n, _ := emptyAll(t, s, bucket, 50)
	t.Logf("%d removed while written to, %d after", removed, n)
	if removed == 0 {
		t.Error("nothing was removed while there was a writer")
	}
	if empty, err := s.IsEmpty(t.Context(), bucket); err != nil || !empty {
		t.Errorf("empty %t, %v", empty, err)
	}
}

func TestObjectsThatDoNotGoAwayAreAnError(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, false)
	// The real server's listing shows a different key for this object. A request to delete
	// the listed key succeeds, but the object remains.
	key := "control\x01key"
	put(t, s, bucket, key)
	removed, done, err := s.Empty(t.Context(), bucket, 100)
	expectReason(t, err, ReasonUnexpectedResponse)
	if done || removed > 2 {
		t.Errorf("removed %d, done %t", removed, done)
	}
	must(t, erase(t.Context(), s, bucket, key))
	expectGone(t, s, bucket)
}

func TestEmptyStopsWhenItIsToldTo(t *testing.T) {
	fake := &fakeBucket{page: 1}
	for i := range 5 {
		fake.versions = append(fake.versions, fakeVersion{key: fmt.Sprint(i)})
	}
	server := faultserver.Start(t, faultserver.Behind(fake))
	server.Script(faultserver.Rule{Method: http.MethodPost, Skip: 2, Fault: faultserver.Hang()})
	store := storeAt(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var (
		removed int
		done    bool
		err     error
		ended   = make(chan struct{})
	)
	go func() {
		defer close(ended)
		removed, done, err = store.Empty(ctx, "photos", 100)
	}()
	await(t, func() bool { return strings.Count(strings.Join(server.Lines(), "\n"), "POST ") == 3 })
	cancel()
	<-ended
	expectReason(t, err, ReasonCanceled)
	if removed != 2 || done {
		t.Errorf("removed %d, done %t", removed, done)
	}
}
