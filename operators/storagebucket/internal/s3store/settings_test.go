package s3store

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

func days(n int32) *int32 { return &n }

// fullSpec returns a spec that declares everything, for a bucket of that name.
func fullSpec(bucket string) *v1.StorageBucketSpec {
	return &v1.StorageBucketSpec{
		Versioning: v1.VersioningEnabled,
		ObjectLock: &v1.ObjectLock{DefaultRetention: &v1.DefaultRetention{Mode: "Governance", Days: days(3)}},
		Tags:       map[string]v1.TagValue{"team": "photo", "cost": ""},
		Lifecycle: []v1.LifecycleRule{
			{ID: "tidy", AbortIncompleteMultipartUploadDays: days(2), ExpiredObjectDeleteMarker: true},
			{ID: "expire", Prefix: "tmp/ü&", ExpirationDays: days(7), NoncurrentVersionExpirationDays: days(1)},
			{ID: "off", Disabled: true, ExpirationDays: days(1)},
		},
		Policy: &apiextensionsv1.JSON{Raw: []byte(`{"Version":"2012-10-17","Statement":[{"Sid":"read","Effect":"Allow",` +
			`"Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` + bucket + `/*"}]}`)},
		CORS: []v1.CORSRule{
			{AllowedOrigins: []string{"https://a.example.com", "https://b.example.com"}, AllowedMethods: []string{"PUT", "GET"},
				AllowedHeaders: []string{"*"}, ExposeHeaders: []string{"ETag"}, MaxAgeSeconds: days(60)},
			{AllowedOrigins: []string{"*"}, AllowedMethods: []string{"GET"}},
		},
		Encryption:        &v1.Encryption{Algorithm: "aws:kms", KMSKeyID: "1234-5678", BucketKey: true},
		PublicAccessBlock: &v1.PublicAccessBlock{BlockPublicACLs: true, RestrictPublicBuckets: true},
	}
}

func names(settings []Setting) []string {
	var names []string
	for _, s := range settings {
		names = append(names, s.Name)
	}
	return names
}

// settingNamed returns the setting of that name in a spec.
func settingNamed(t *testing.T, spec *v1.StorageBucketSpec, name string) Setting {
	t.Helper()
	for _, s := range Settings(spec) {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("%s is not declared", name)
	return Setting{}
}

func TestSettingsComeInTheOrderInWhichTheyAreApplied(t *testing.T) {
	want := []string{"versioning", "objectLock", "encryption", "publicAccessBlock", "policy", "lifecycle", "cors", "tags"}
	if diff := cmp.Diff(want, names(Settings(fullSpec("photos")))); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotDeclaredIsNoSetting(t *testing.T) {
	for name, spec := range map[string]*v1.StorageBucketSpec{
		"nothing": {BucketName: "photos", Management: v1.Manage, DeletionPolicy: v1.Delete},
		"empty lists": {Tags: map[string]v1.TagValue{}, Lifecycle: []v1.LifecycleRule{}, CORS: []v1.CORSRule{},
			Policy: &apiextensionsv1.JSON{Raw: []byte("null")}},
		// Validation rejects this tag, and Settings ignores it, so that it can never take
		// over a bucket.
		"the operator's own tag": {Tags: map[string]v1.TagValue{"storage.koboshi.dev/uid": "1"}},
	} {
		if got := Settings(spec); len(got) > 0 {
			t.Errorf("%s: %v", name, names(got))
		}
	}
	// A struct that is present is treated as declared, whatever its content.
	got := names(Settings(&v1.StorageBucketSpec{ObjectLock: &v1.ObjectLock{}, PublicAccessBlock: &v1.PublicAccessBlock{}}))
	if diff := cmp.Diff([]string{"objectLock", "publicAccessBlock"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHashesFollowTheMeaningAndNothingElse(t *testing.T) {
	hashes := func(change func(*v1.StorageBucketSpec)) map[string]string {
		spec := fullSpec("photos")
		change(spec)
		all := map[string]string{}
		for _, s := range Settings(spec) {
			all[s.Name] = s.Hash
		}
		return all
	}
	base := hashes(func(*v1.StorageBucketSpec) {})
	same := hashes(func(s *v1.StorageBucketSpec) {
		slices.Reverse(s.Lifecycle)
		var policy any
		_ = json.Unmarshal(s.Policy.Raw, &policy)
		s.Policy.Raw, _ = json.MarshalIndent(policy, "", "\t")
		s.DriftInterval.Duration = 1
	})
	if diff := cmp.Diff(base, same); diff != "" {
		t.Error(diff)
	}
	if len(slices.Compact(slices.Sorted(maps.Values(base)))) != len(base) {
		t.Errorf("two settings have the same hash: %v", base)
	}
	for name, change := range map[string]func(*v1.StorageBucketSpec){
		"versioning":        func(s *v1.StorageBucketSpec) { s.Versioning = v1.VersioningSuspended },
		"objectLock":        func(s *v1.StorageBucketSpec) { s.ObjectLock.DefaultRetention.Days = days(4) },
		"tags":              func(s *v1.StorageBucketSpec) { s.Tags["cost"] = "1" },
		"lifecycle":         func(s *v1.StorageBucketSpec) { s.Lifecycle[0].Disabled = true },
		"policy":            func(s *v1.StorageBucketSpec) { s.Policy.Raw = []byte(`{"Statement":[]}`) },
		"cors":              func(s *v1.StorageBucketSpec) { s.CORS[1].MaxAgeSeconds = days(1) },
		"encryption":        func(s *v1.StorageBucketSpec) { s.Encryption.BucketKey = false },
		"publicAccessBlock": func(s *v1.StorageBucketSpec) { s.PublicAccessBlock.IgnorePublicACLs = true },
	} {
		for setting, hash := range hashes(change) {
			if (hash == base[setting]) == (setting == name) {
				t.Errorf("a change of %s has the wrong effect on the hash of %s", name, setting)
			}
		}
	}
}

func TestTheKeysOfTagsAreKept(t *testing.T) {
	for _, s := range Settings(fullSpec("photos")) {
		var want []string
		if s.Name == "tags" {
			want = []string{"cost", "team"}
		}
		if diff := cmp.Diff(want, s.Keys); diff != "" {
			t.Errorf("%s: %s", s.Name, diff)
		}
	}
}

// expectHeld checks the result of Matches.
func expectHeld(t *testing.T, s *Store, bucket string, setting Setting, want bool) {
	t.Helper()
	if held, err := s.Matches(t.Context(), bucket, setting); err != nil || held != want {
		t.Errorf("%s: held %t, %v, want %t", setting.Name, held, err, want)
	}
}

// fillAndClear applies, compares and removes a setting.
func fillAndClear(t *testing.T, s *Store, bucket string, setting Setting) {
	t.Helper()
	expectHeld(t, s, bucket, setting, false)
	for range 2 {
		must(t, s.Apply(t.Context(), bucket, setting))
		expectHeld(t, s, bucket, setting, true)
	}
	applied := v1.AppliedConfiguration{Name: setting.Name, Hash: setting.Hash, Keys: setting.Keys}
	for range 2 {
		must(t, s.Remove(t.Context(), bucket, applied))
		expectHeld(t, s, bucket, setting, false)
	}
}

func TestTheRealServerHoldsWhatItCan(t *testing.T) {
	s := gatewayStore(t)
	spec := fullSpec("")
	for _, name := range []string{"versioning", "policy", "cors", "tags"} {
		t.Run(name, func(t *testing.T) {
			bucket := newBucket(t, s, false)
			spec := fullSpec(bucket)
			fillAndClear(t, s, bucket, settingNamed(t, spec, name))
		})
	}
	t.Run("objectLock", func(t *testing.T) {
		bucket := newName(t)
		must(t, s.Create(t.Context(), bucket, CreateOptions{ObjectLock: true}))
		fillAndClear(t, s, bucket, settingNamed(t, spec, "objectLock"))
		years := &v1.StorageBucketSpec{ObjectLock: &v1.ObjectLock{DefaultRetention: &v1.DefaultRetention{Mode: "Compliance", Years: days(1)}}}
		fillAndClear(t, s, bucket, settingNamed(t, years, "objectLock"))
	})
	for _, name := range []string{"lifecycle", "encryption", "publicAccessBlock"} {
		t.Run(name, func(t *testing.T) {
			bucket := newBucket(t, s, false)
			setting := settingNamed(t, spec, name)
			_, err := s.Matches(t.Context(), bucket, setting)
			expectReason(t, err, ReasonUnsupported)
			expectReason(t, s.Apply(t.Context(), bucket, setting), ReasonUnsupported)
			expectReason(t, s.Remove(t.Context(), bucket, v1.AppliedConfiguration{Name: name}), ReasonUnsupported)
		})
	}
}

func TestAStoreThatHoldsEverythingIsFilledAndCleared(t *testing.T) {
	spec := fullSpec("photos")
	for _, setting := range Settings(spec) {
		t.Run(setting.Name, func(t *testing.T) {
			fake := &fakeBucket{}
			s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
			fillAndClear(t, s, "photos", setting)
		})
	}
}

func TestWhatAStoreDropsInSilenceIsNotHeld(t *testing.T) {
	spec := fullSpec("photos")
	for _, setting := range Settings(spec) {
		t.Run(setting.Name, func(t *testing.T) {
			fake := &fakeBucket{drops: slices.Collect(maps.Keys(absentCode))}
			s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
			must(t, s.Apply(t.Context(), "photos", setting))
			expectHeld(t, s, "photos", setting, false)
		})
	}
}

func TestFailuresOfSettingsAreClassed(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault faultserver.Fault
		want  Reason
	}{
		{"unsupported", faultserver.S3Error(501, "NotImplemented"), ReasonUnsupported},
		{"a bare 405", faultserver.Status(405), ReasonUnsupported},
		{"denied", faultserver.S3Error(403, "AccessDenied"), ReasonAccessDenied},
		{"no bucket", faultserver.S3Error(404, "NoSuchBucket"), ReasonBucketNotFound},
		{"a bare 404", faultserver.Status(404), ReasonUnexpectedResponse},
		{"invalid", faultserver.S3Error(400, "InvalidArgument"), ReasonInvalidConfiguration},
		{"broken", faultserver.Reset(), ReasonEndpointUnreachable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := faultserver.Start(t)
			server.Script(faultserver.Rule{Fault: tc.fault})
			s := storeAt(t, server)
			for _, setting := range Settings(fullSpec("photos")) {
				held, err := s.Matches(t.Context(), "photos", setting)
				expectReason(t, err, tc.want)
				if held {
					t.Errorf("%s is held", setting.Name)
				}
				expectReason(t, s.Apply(t.Context(), "photos", setting), tc.want)
				expectReason(t, s.Remove(t.Context(), "photos", v1.AppliedConfiguration{Name: setting.Name, Keys: setting.Keys}), tc.want)
			}
		})
	}
}

func TestASettingNobodyKnowsIsNotRemoved(t *testing.T) {
	server := faultserver.Start(t)
	err := storeAt(t, server).Remove(t.Context(), "photos", v1.AppliedConfiguration{Name: "replication"})
	expectReason(t, err, ReasonUnsupported)
	if server.Count() > 0 {
		t.Errorf("%q", server.Lines())
	}
}

func TestTagsOfOthersAreLeftAlone(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, false)
	foreign := map[string]string{"storage.koboshi.dev/uid": "1", "theirs": "x", "team": "film"}
	must(t, s.SetTags(t.Context(), bucket, foreign))
	setting := settingNamed(t, fullSpec(bucket), "tags")
	expectTags := func(want map[string]string) {
		t.Helper()
		got, err := s.Tags(t.Context(), bucket)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	expectHeld(t, s, bucket, setting, false)
	must(t, s.Apply(t.Context(), bucket, setting))
	expectTags(map[string]string{"storage.koboshi.dev/uid": "1", "theirs": "x", "team": "photo", "cost": ""})
	expectHeld(t, s, bucket, setting, true)
	must(t, s.Remove(t.Context(), bucket, v1.AppliedConfiguration{Name: "tags", Keys: []string{"cost", "never", "storage.koboshi.dev/uid"}}))
	expectTags(map[string]string{"storage.koboshi.dev/uid": "1", "theirs": "x", "team": "photo"})
	must(t, s.Remove(t.Context(), bucket, v1.AppliedConfiguration{Name: "tags"}))
	expectTags(map[string]string{"storage.koboshi.dev/uid": "1", "theirs": "x", "team": "photo"})
}

func TestTagsThatAreThereAreNotWrittenAgain(t *testing.T) {
	s, server := beforeGateway(t)
	bucket := newBucket(t, s, false)
	setting := settingNamed(t, fullSpec(bucket), "tags")
	must(t, s.Apply(t.Context(), bucket, setting))
	server.Forget()
	must(t, s.Apply(t.Context(), bucket, setting))
	must(t, s.Remove(t.Context(), bucket, v1.AppliedConfiguration{Name: "tags", Keys: []string{"other"}}))
	for _, line := range server.Lines() {
		if !strings.HasPrefix(line, "GET ") {
			t.Error(line)
		}
	}
}

func TestVersioningIsSuspendedOnlyWhereItWasOn(t *testing.T) {
	s, server := beforeGateway(t)
	bucket := newBucket(t, s, false)
	suspended := settingNamed(t, &v1.StorageBucketSpec{Versioning: v1.VersioningSuspended}, "versioning")
	applied := v1.AppliedConfiguration{Name: "versioning"}
	expectHeld(t, s, bucket, suspended, true)
	server.Script(faultserver.Rule{Method: "PUT", Fault: faultserver.Status(500)})
	must(t, s.Remove(t.Context(), bucket, applied))
	server.Heal()
	must(t, versioning("Enabled").putInto(t.Context(), s, bucket))
	expectHeld(t, s, bucket, suspended, false)
	must(t, s.Remove(t.Context(), bucket, applied))
	expectHeld(t, s, bucket, suspended, true)
	must(t, s.Apply(t.Context(), bucket, suspended))
	expectHeld(t, s, bucket, suspended, true)
}

func TestObjectLockNeedsABucketMadeForIt(t *testing.T) {
	s := gatewayStore(t)
	bucket := newBucket(t, s, false)
	lock := settingNamed(t, fullSpec(bucket), "objectLock")
	expectHeld(t, s, bucket, lock, false)
	expectReason(t, s.Apply(t.Context(), bucket, lock), ReasonInvalidConfiguration)
	must(t, s.Remove(t.Context(), bucket, v1.AppliedConfiguration{Name: "objectLock"}))
}
