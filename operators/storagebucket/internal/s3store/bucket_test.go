package s3store

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

// beforeGateway returns a store whose requests reach the real server through
// a server with configurable faults.
func beforeGateway(t *testing.T) (*Store, *faultserver.Server) {
	t.Helper()
	config := gatewayConfig(t)
	server := faultserver.Start(t, faultserver.Before(config.Endpoint))
	endpoint, err := ParseEndpoint(server.URL)
	must(t, err)
	config.Endpoint = endpoint
	return storeFrom(t, config), server
}

func TestFindSeesABucketAndItsAbsence(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, false)
	for name, exists := range map[string]bool{bucket: true, newName(t): false} {
		found, err := s.Find(t.Context(), name)
		must(t, err)
		if found.Exists != exists {
			t.Errorf("%s: exists %t", name, found.Exists)
		}
		if off := time.Since(found.StoreTime); off < 0 || off > time.Minute {
			t.Errorf("%s: the store's time is %v ago", name, off)
		}
	}
}

func TestFindBelievesAbsenceOnlyWhenTheStoreSaysSo(t *testing.T) {
	listing := faultserver.Body(200, "<ListBucketResult><Name>photos</Name></ListBucketResult>")
	for _, tc := range []struct {
		name      string
		head, get faultserver.Fault
		want      Reason // empty for success
		exists    bool
		requests  int
	}{
		{"no such bucket", faultserver.Status(404), faultserver.S3Error(404, "NoSuchBucket"), "", false, 2},
		{"a bare 404", faultserver.Status(404), faultserver.Status(404), ReasonUnexpectedResponse, false, 2},
		{"a web page with 404", faultserver.Status(404), faultserver.Garbage(404), ReasonUnexpectedResponse, false, 2},
		{"another code with 404", faultserver.Status(404), faultserver.S3Error(404, "NoSuchKey"), ReasonUnexpectedResponse, false, 2},
		{"a wrong key with 404", faultserver.Status(404), faultserver.S3Error(404, "InvalidAccessKeyId"), ReasonInvalidCredentials, false, 2},
		{"somebody else's bucket", faultserver.Status(403), faultserver.S3Error(403, "AccessDenied"), ReasonAccessDenied, false, 2},
		{"a bare 403", faultserver.Status(403), faultserver.Status(403), ReasonAccessDenied, false, 2},
		{"another region", faultserver.Status(301, "X-Amz-Bucket-Region", "eu-west-1"),
			faultserver.S3Error(301, "PermanentRedirect", "X-Amz-Bucket-Region", "eu-west-1"), ReasonWrongRegion, false, 2},
		{"a store that is busy", faultserver.Throttle("1"), nil, ReasonThrottled, false, 1},
		{"a broken connection", faultserver.Reset(), nil, ReasonEndpointUnreachable, false, 1},
		{"a broken answer", faultserver.Status(404), faultserver.TruncatedBody(404), ReasonEndpointUnreachable, false, 2},
		{"a failure", faultserver.Status(500), faultserver.S3Error(500, "InternalError"), ReasonServerError, false, 2},
		{"a store without HEAD", faultserver.Status(405), listing, "", true, 2},
		{"a web page instead of a listing", faultserver.Status(404), faultserver.Body(200, "<html></html>"), ReasonUnexpectedResponse, false, 2},
		{"nothing instead of a listing", faultserver.Status(404), faultserver.Status(200), ReasonUnexpectedResponse, false, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := faultserver.Start(t)
			server.Script(faultserver.Rule{Method: http.MethodHead, Fault: tc.head}, faultserver.Rule{Fault: tc.get})
			found, err := storeAt(t, server).Find(t.Context(), "photos")
			expectReason(t, err, tc.want)
			if found.Exists != tc.exists {
				t.Errorf("exists: %t", found.Exists)
			}
			if n := server.Count(); n != tc.requests {
				t.Errorf("%d requests: %q", n, server.Lines())
			}
		})
	}
}

func TestTheStoresTimeIsItsDateHeader(t *testing.T) {
	want := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, tc := range []struct {
		name, date string
		want       time.Time
	}{
		{"a date", want.Format(http.TimeFormat), want},
		{"no date", "", time.Time{}},
		{"no valid date", "tomorrow", time.Time{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := faultserver.Start(t)
			server.Script(faultserver.Rule{Method: http.MethodHead, Path: "/there", Fault: faultserver.Status(200, "Date", tc.date)},
				faultserver.Rule{Method: http.MethodHead, Fault: faultserver.Status(404)},
				faultserver.Rule{Fault: faultserver.S3Error(404, "NoSuchBucket", "Date", tc.date)})
			for _, bucket := range []string{"there", "gone"} {
				found, err := storeAt(t, server).Find(t.Context(), bucket)
				must(t, err)
				if found.Exists != (bucket == "there") || !found.StoreTime.Equal(tc.want) {
					t.Errorf("%s: %+v", bucket, found)
				}
			}
		})
	}
}

func TestABucketIsMadeWithItsTags(t *testing.T) {
	s, server := beforeGateway(t)
	bucket, want := newName(t), map[string]string{"storage.koboshi.dev/uid": "123", "team": "photo + film", "empty": ""}
	must(t, s.Create(t.Context(), bucket, CreateOptions{Tags: want}))
	if lines := server.Lines(); len(lines) != 1 {
		t.Errorf("requests %q, want the tags to come with the first", lines)
	}
	got, err := s.Tags(t.Context(), bucket)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestABucketIsMadeWithObjectLock(t *testing.T) {
	s := gatewayStore(t)
	bucket := newName(t)
	must(t, s.Create(t.Context(), bucket, CreateOptions{ObjectLock: true}))
	for _, v := range []value{versioning("Enabled"), objectLock{}} {
		if held, err := v.heldBy(t.Context(), s, bucket); err != nil || !held {
			t.Errorf("%T: %t, %v", v, held, err)
		}
	}
}

func TestABucketThatExistsIsNotMade(t *testing.T) {
	s, server := beforeGateway(t)
	bucket := newBucket(t, s, false)
	err := s.Create(t.Context(), bucket, CreateOptions{Tags: map[string]string{"a": "b"}})
	expectReason(t, err, ReasonBucketExists)
	tags, err := s.Tags(t.Context(), bucket)
	if err != nil || len(tags) > 0 {
		t.Errorf("tags %v, %v: the bucket was changed", tags, err)
	}
	server.Script(faultserver.Rule{Method: http.MethodPut, Fault: faultserver.S3Error(409, "BucketAlreadyExists")})
	expectReason(t, s.Create(t.Context(), bucket, CreateOptions{}), ReasonOwnershipConflict)
}

func TestTagsThatAStoreRefusesOnCreateAreLeftOut(t *testing.T) {
	for _, tc := range []struct {
		name     string
		refusal  faultserver.Fault
		want     Reason
		requests int
	}{
		{"malformed", faultserver.S3Error(400, "MalformedXML"), "", 2},
		{"not implemented", faultserver.S3Error(501, "NotImplemented"), "", 2},
		{"a bare 501", faultserver.Status(501), "", 2},
		// After a denial, the bucket must not be created without the tags.
		{"denied", faultserver.S3Error(403, "AccessDenied"), ReasonAccessDenied, 1},
		{"a tag that is not valid", faultserver.S3Error(400, "InvalidTag"), ReasonInvalidConfiguration, 1},
		{"throttled", faultserver.Throttle(""), ReasonThrottled, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, server := beforeGateway(t)
			server.Script(faultserver.Rule{Method: http.MethodPut, Times: 1, Fault: tc.refusal})
			bucket := newName(t)
			err := s.Create(t.Context(), bucket, CreateOptions{Tags: map[string]string{"a": "b"}})
			expectReason(t, err, tc.want)
			if n := server.Count(); n != tc.requests {
				t.Errorf("%d requests", n)
			}
			found, err := s.Find(t.Context(), bucket)
			if err != nil || found.Exists != (tc.want == "") {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

func TestTheLocationIsSentWhereItIsWanted(t *testing.T) {
	for _, tc := range []struct {
		region     string
		tags       map[string]string
		want, lack []string
	}{
		{"us-east-1", nil, nil, []string{"CreateBucketConfiguration"}},
		{"us-east-1", map[string]string{"a": "b"}, []string{"<Key>a</Key>"}, []string{"LocationConstraint"}},
		{"eu-west-1", nil, []string{"<LocationConstraint>eu-west-1</LocationConstraint>"}, []string{"Tag"}},
		{"garage", map[string]string{"a": "b"}, []string{"<LocationConstraint>garage</LocationConstraint>", "<Key>a</Key>"}, nil},
	} {
		fake := &fakeBucket{}
		config := configAt(t, faultserver.Start(t, faultserver.Behind(fake)))
		config.Region = tc.region
		must(t, storeFrom(t, config).Create(t.Context(), "photos", CreateOptions{Tags: tc.tags}))
		for _, want := range tc.want {
			if !strings.Contains(fake.lastSent(), want) {
				t.Errorf("%s: no %s in %s", tc.region, want, fake.lastSent())
			}
		}
		for _, lack := range tc.lack {
			if strings.Contains(fake.lastSent(), lack) {
				t.Errorf("%s: %s in %s", tc.region, lack, fake.lastSent())
			}
		}
	}
}

func TestCreationIsWhatTheStoreListsForTheAccount(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, false)
	at, listed, err := s.Creation(t.Context(), bucket)
	if off := time.Since(at); err != nil || !listed || off < -time.Second || off > time.Minute {
		t.Errorf("%v, %t, %v", at, listed, err)
	}
	// The second name differs from a listed name only in its last character.
	for _, name := range []string{"nobodys-bucket", bucket[:len(bucket)-1] + "-"} {
		if at, listed, err := s.Creation(t.Context(), name); err != nil || listed || !at.IsZero() {
			t.Errorf("%s: %v, %t, %v", name, at, listed, err)
		}
	}
}

func TestCreationReadsPageAfterPage(t *testing.T) {
	page := func(next string, names ...string) faultserver.Fault {
		var b strings.Builder
		b.WriteString("<ListAllMyBucketsResult><Buckets>")
		for _, name := range names {
			b.WriteString("<Bucket><Name>" + name + "</Name><CreationDate>2031-02-03T04:05:06Z</CreationDate></Bucket>")
		}
		b.WriteString("</Buckets>" + next + "</ListAllMyBucketsResult>")
		return faultserver.Body(200, b.String())
	}
	token := func(text string) string { return "<ContinuationToken>" + text + "</ContinuationToken>" }
	script := func(t *testing.T) (*Store, *faultserver.Server) {
		server := faultserver.Start(t)
		server.Script(
			faultserver.Rule{Query: "continuation-token=two", Fault: page("", "photos-2", "photos")},
			faultserver.Rule{Query: "continuation-token=one", Fault: page(token("two"))},
			faultserver.Rule{Fault: page(token("one"), "photos-1")})
		return storeAt(t, server), server
	}
	s, server := script(t)
	at, listed, err := s.Creation(t.Context(), "photos")
	if want := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC); err != nil || !listed || !at.Equal(want) {
		t.Errorf("%v, %t, %v", at, listed, err)
	}
	if lines := server.Lines(); len(lines) != 3 || !strings.Contains(lines[0], "prefix=photos") {
		t.Errorf("%q", lines)
	}
	if _, listed, err := s.Creation(t.Context(), "phot"); err != nil || listed {
		t.Errorf("the beginning of a name counts as the name: %v", err)
	}
	t.Run("a token that repeats itself", func(t *testing.T) {
		server := faultserver.Start(t)
		server.Script(faultserver.Rule{Fault: page(token("again"), "other")})
		_, listed, err := storeAt(t, server).Creation(t.Context(), "photos")
		expectReason(t, err, ReasonUnexpectedResponse)
		if listed {
			t.Error("listed")
		}
	})
	t.Run("denied", func(t *testing.T) {
		server := faultserver.Start(t)
		server.Script(faultserver.Rule{Fault: faultserver.S3Error(403, "AccessDenied")})
		_, _, err := storeAt(t, server).Creation(t.Context(), "photos")
		expectReason(t, err, ReasonAccessDenied)
	})
}

func TestDeleteTakesOnlyAnEmptyBucket(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, false)
	put(t, s, bucket, "cat")
	expectReason(t, s.Delete(t.Context(), bucket), ReasonNotEmpty)
	if found, err := s.Find(t.Context(), bucket); err != nil || !found.Exists {
		t.Fatalf("%+v, %v", found, err)
	}
	_, _, err := s.Empty(t.Context(), bucket, 10)
	must(t, err)
	must(t, s.Delete(t.Context(), bucket))
	if found, err := s.Find(t.Context(), bucket); err != nil || found.Exists {
		t.Fatalf("%+v, %v", found, err)
	}
	// Deleting again must succeed, because the response to the first request may be lost
	// in a crash.
	must(t, s.Delete(t.Context(), bucket))
}

func TestDeleteBelievesNoBare404(t *testing.T) {
	server := faultserver.Start(t)
	server.Script(faultserver.Rule{Fault: faultserver.Status(404)})
	expectReason(t, storeAt(t, server).Delete(t.Context(), "photos"), ReasonUnexpectedResponse)
}

func TestTagsAreReplacedAsAWhole(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, false)
	for _, want := range []map[string]string{{}, {"a": "1", "b": "2"}, {"b": "3"}, {}} {
		must(t, s.SetTags(t.Context(), bucket, want))
		got, err := s.Tags(t.Context(), bucket)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	_, err := s.Tags(t.Context(), newName(t))
	expectReason(t, err, ReasonBucketNotFound)
	expectReason(t, s.SetTags(t.Context(), newName(t), map[string]string{"a": "b"}), ReasonBucketNotFound)
}

func TestChangesCarryTheChecksumThatOldStoresWant(t *testing.T) {
	fake := &fakeBucket{}
	s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
	must(t, s.SetTags(t.Context(), "photos", map[string]string{"a": "b"}))
	if fake.lastHeader("Content-Md5") == "" {
		t.Error("no Content-MD5")
	}
}

func TestUsageCountsWhatReadersSee(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, true)
	for _, key := range []string{"a", "a", "bb", "ccc", "dddd"} {
		put(t, s, bucket, key)
	}
	must(t, upload(t.Context(), s, bucket, "unfinished"))
	for limit, want := range map[int64]Usage{
		100: {Objects: 4, Bytes: 10},
		4:   {Objects: 4, Bytes: 10},
		3:   {Objects: 3, Bytes: 6, Truncated: true},
		0:   {Truncated: true},
	} {
		got, err := s.Usage(t.Context(), bucket, limit)
		must(t, err)
		if got != want {
			t.Errorf("limit %d: %+v, want %+v", limit, got, want)
		}
	}
	_, err := s.Usage(t.Context(), newName(t), 10)
	expectReason(t, err, ReasonBucketNotFound)
}

func TestUsageReadsPageAfterPage(t *testing.T) {
	fake := &fakeBucket{page: 2, gaps: true}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		fake.versions = append(fake.versions, fakeVersion{key: key})
	}
	server := faultserver.Start(t, faultserver.Behind(fake))
	s := storeAt(t, server)
	for limit, want := range map[int64]Usage{
		9: {Objects: 5, Bytes: 15},
		5: {Objects: 5, Bytes: 15},
		3: {Objects: 3, Bytes: 9, Truncated: true},
	} {
		got, err := s.Usage(t.Context(), "photos", limit)
		must(t, err)
		if got != want {
			t.Errorf("limit %d: %+v, want %+v", limit, got, want)
		}
	}
	if !slices.ContainsFunc(server.Lines(), func(line string) bool { return strings.HasSuffix(line, "max-keys=1") }) {
		t.Errorf("more objects were requested than the limit allows: %q", server.Lines())
	}
	server.Script(faultserver.Rule{Fault: faultserver.Garbage(200)})
	_, err := s.Usage(t.Context(), "photos", 9)
	expectReason(t, err, ReasonUnexpectedResponse)
}
