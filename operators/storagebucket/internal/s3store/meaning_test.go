package s3store

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

func TestPoliciesAreComparedByWhatTheySay(t *testing.T) {
	statement := func(s string) string { return `{"Version":"2012-10-17","Statement":[` + s + `]}` }
	const base = `{"Effect":"Allow","Principal":{"AWS":"*"},"Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::b/*"}`
	for _, tc := range []struct {
		name, a, b string
		same       bool
	}{
		{"itself", statement(base), statement(base), true},
		{"spaces and order of keys", statement(base), ` { "Statement" : [ {"Resource":"arn:aws:s3:::b/*", "Action":["s3:GetObject","s3:PutObject"],
			"Principal":{"AWS":"*"},"Effect":"Allow"} ], "Version":"2012-10-17"}`, true},
		{"one statement without its list", statement(base), `{"Version":"2012-10-17","Statement":` + base + `}`, true},
		{"a star for any principal", statement(base), statement(strings.Replace(base, `{"AWS":"*"}`, `"*"`, 1)), true},
		{"a list of a star", statement(base), statement(strings.Replace(base, `{"AWS":"*"}`, `{"AWS":["*"]}`, 1)), true},
		{"a list of one resource", statement(base), statement(strings.Replace(base, `"arn:aws:s3:::b/*"`, `["arn:aws:s3:::b/*"]`, 1)), true},
		{"actions in another order", statement(base), statement(strings.Replace(base, `"s3:GetObject","s3:PutObject"`, `"s3:PutObject","s3:GetObject"`, 1)), true},
		{"an action twice", statement(base), statement(strings.Replace(base, `"s3:GetObject",`, `"s3:GetObject","s3:GetObject",`, 1)), true},
		{"statements in another order", statement(base + `,{"Effect":"Deny"}`), statement(`{"Effect":"Deny"},` + base), true},
		{"an empty name", statement(`{"Sid":"","Effect":"Deny"}`), statement(`{"Effect":"Deny"}`), true},
		{"the account for its root", statement(`{"Principal":{"AWS":["123456789012"]}}`), statement(`{"Principal":{"AWS":"arn:aws:iam::123456789012:root"}}`), true},
		{"the account of another partition", statement(`{"NotPrincipal":{"AWS":["123456789012"]}}`), statement(`{"NotPrincipal":{"AWS":"arn:aws-us-gov:iam::123456789012:root"}}`), true},
		{"a condition's value as text", statement(`{"Condition":{"Bool":{"aws:SecureTransport":false},"NumericLessThan":{"x":10}}}`),
			statement(`{"Condition":{"Bool":{"aws:SecureTransport":["false"]},"NumericLessThan":{"x":"10"}}}`), true},

		{"one action less", statement(base), statement(strings.Replace(base, `"s3:GetObject",`, ``, 1)), false},
		{"another effect", statement(base), statement(strings.Replace(base, "Allow", "Deny", 1)), false},
		{"another version", statement(base), strings.Replace(statement(base), "2012-10-17", "2008-10-17", 1), false},
		{"another principal", statement(base), statement(strings.Replace(base, `{"AWS":"*"}`, `{"AWS":"123456789012"}`, 1)), false},
		{"another kind of principal", statement(base), statement(strings.Replace(base, `{"AWS":"*"}`, `{"CanonicalUser":"*"}`, 1)), false},
		{"a user for its account", statement(`{"Principal":{"AWS":["123456789012"]}}`), statement(`{"Principal":{"AWS":"arn:aws:iam::123456789012:user/x"}}`), false},
		{"no action for action", statement(base), statement(strings.Replace(base, `"Action"`, `"NotAction"`, 1)), false},
		{"another condition", statement(`{"Condition":{"Bool":{"a":true}}}`), statement(`{"Condition":{"Bool":{"a":false}}}`), false},
		{"a statement more", statement(base), statement(base + `,{"Effect":"Deny"}`), false},
		{"a name", statement(`{"Sid":"a","Effect":"Deny"}`), statement(`{"Effect":"Deny"}`), false},
		{"no JSON", statement(base), "<html>", false},
		{"nothing", statement(base), "", false},
		{"not an object", statement(base), "[]", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if samePolicy([]byte(tc.a), []byte(tc.b)) != tc.same || samePolicy([]byte(tc.b), []byte(tc.a)) != tc.same {
				t.Errorf("%s and %s: want same %t", tc.a, tc.b, tc.same)
			}
		})
	}
}

func FuzzPoliciesAreComparedWithoutHarm(f *testing.F) {
	f.Add([]byte(`{"Statement":[{"Principal":"*","Action":[1,null,{}],"Condition":{"a":{"b":[true,1.0]}}}]}`))
	f.Add([]byte(`{"Statement":{"Principal":{"AWS":[[]]},"Condition":[]}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := readJSON(text); err == nil && !samePolicy(text, text) {
			t.Errorf("%s differs from itself", text)
		}
	})
}

func TestAPolicyThatIsNoJSONIsLeftToTheStoreToRefuse(t *testing.T) {
	server := faultserver.Start(t)
	server.Script(faultserver.Rule{Fault: faultserver.S3Error(400, "MalformedPolicy")})
	s := storeAt(t, server)
	for _, setting := range Settings(&v1.StorageBucketSpec{Policy: &apiextensionsv1.JSON{Raw: []byte("{")}}) {
		expectReason(t, s.Apply(t.Context(), "photos", setting), ReasonInvalidConfiguration)
	}
}

// TestDocumentsAreReadAsStoresWriteThem puts possible responses of a store
// into the fake, and checks whether they match what fullSpec declares.
func TestDocumentsAreReadAsStoresWriteThem(t *testing.T) {
	rule := func(inside string) string {
		return `<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status>` + inside + `</Rule></LifecycleConfiguration>`
	}
	const week = `<Expiration><Days>7</Days></Expiration>`
	lifecycle := func(prefix string) *v1.StorageBucketSpec {
		return &v1.StorageBucketSpec{Lifecycle: []v1.LifecycleRule{{ID: "r", Prefix: prefix, ExpirationDays: days(7)}}}
	}
	two := &v1.StorageBucketSpec{Lifecycle: []v1.LifecycleRule{{ID: "b", ExpirationDays: days(1)}, {ID: "a", ExpirationDays: days(2)}}}
	plainRule := func(id, days string) string {
		return `<Rule><ID>` + id + `</ID><Status>Enabled</Status><Expiration><Days>` + days + `</Days></Expiration></Rule>`
	}
	kms := func(key, rest string) string {
		return `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>aws:kms</SSEAlgorithm>` +
			key + `</ApplyServerSideEncryptionByDefault>` + rest + `</Rule></ServerSideEncryptionConfiguration>`
	}
	keyID := func(id string) string { return `<KMSMasterKeyID>` + id + `</KMSMasterKeyID>` }
	withKey := func(id string) *v1.StorageBucketSpec {
		return &v1.StorageBucketSpec{Encryption: &v1.Encryption{Algorithm: "aws:kms", KMSKeyID: id}}
	}
	block := func(b v1.PublicAccessBlock) *v1.StorageBucketSpec {
		return &v1.StorageBucketSpec{PublicAccessBlock: &b}
	}
	lock := func(r *v1.DefaultRetention) *v1.StorageBucketSpec {
		return &v1.StorageBucketSpec{ObjectLock: &v1.ObjectLock{DefaultRetention: r}}
	}
	locked := func(rule string) string {
		return `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled>` + rule + `</ObjectLockConfiguration>`
	}
	const threeDays = `<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>3</Days></DefaultRetention></Rule>`
	origin := func(inside string) string {
		return `<CORSConfiguration><CORSRule>` + inside + `</CORSRule></CORSConfiguration>`
	}
	const corsRule = `<AllowedOrigin>b</AllowedOrigin><AllowedOrigin>a</AllowedOrigin><AllowedMethod>GET</AllowedMethod>`
	cors := &v1.StorageBucketSpec{CORS: []v1.CORSRule{{AllowedOrigins: []string{"a", "b"}, AllowedMethods: []string{"GET"}}}}
	tags := &v1.StorageBucketSpec{Tags: map[string]v1.TagValue{"a": ""}}

	for _, tc := range []struct {
		name, document, text string
		spec                 *v1.StorageBucketSpec
		held                 bool
	}{
		{"the new place of a prefix", "lifecycle", rule(`<Filter><Prefix>x</Prefix></Filter>` + week), lifecycle("x"), true},
		{"the old place of a prefix", "lifecycle", rule(`<Prefix>x</Prefix>` + week), lifecycle("x"), true},
		{"a prefix among others", "lifecycle", rule(`<Filter><And><Prefix>x</Prefix></And></Filter>` + week), lifecycle("x"), true},
		{"another prefix", "lifecycle", rule(`<Filter><Prefix>y</Prefix></Filter>` + week), lifecycle("x"), false},
		{"no filter", "lifecycle", rule(week), lifecycle(""), true},
		{"an empty filter", "lifecycle", rule(`<Filter/>` + week), lifecycle(""), true},
		{"days that are zero", "lifecycle", rule(week + `<NoncurrentVersionExpiration><NewerNoncurrentVersions>0</NewerNoncurrentVersions></NoncurrentVersionExpiration>`), lifecycle(""), true},
		{"other days", "lifecycle", rule(`<Expiration><Days>8</Days></Expiration>`), lifecycle(""), false},
		{"a date", "lifecycle", rule(`<Expiration><Date>2030-01-01T00:00:00Z</Date></Expiration>`), lifecycle(""), false},
		{"a rule that is off", "lifecycle", strings.Replace(rule(week), "Enabled", "Disabled", 1), lifecycle(""), false},
		{"a filter by tag", "lifecycle", rule(`<Filter><Tag><Key>a</Key><Value>b</Value></Tag></Filter>` + week), lifecycle(""), false},
		{"a filter by tags", "lifecycle", rule(`<Filter><And><Prefix>x</Prefix><Tag><Key>a</Key><Value>b</Value></Tag></And></Filter>` + week), lifecycle("x"), false},
		{"a filter by size", "lifecycle", rule(`<Filter><ObjectSizeGreaterThan>5</ObjectSizeGreaterThan></Filter>` + week), lifecycle(""), false},
		{"a filter by size and prefix", "lifecycle", rule(`<Filter><And><Prefix>x</Prefix><ObjectSizeLessThan>5</ObjectSizeLessThan></And></Filter>` + week), lifecycle("x"), false},
		{"versions that are kept", "lifecycle", rule(week + `<NoncurrentVersionExpiration><NewerNoncurrentVersions>2</NewerNoncurrentVersions></NoncurrentVersionExpiration>`), lifecycle(""), false},
		{"a transition as well", "lifecycle", rule(week + `<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition>`), lifecycle(""), false},
		{"a transition of versions", "lifecycle", rule(week + `<NoncurrentVersionTransition><NoncurrentDays>1</NoncurrentDays><StorageClass>GLACIER</StorageClass></NoncurrentVersionTransition>`), lifecycle(""), false},
		{"rules in another order", "lifecycle", `<LifecycleConfiguration>` + plainRule("b", "1") + plainRule("a", "2") + `</LifecycleConfiguration>`, two, true},
		{"a rule more", "lifecycle", `<LifecycleConfiguration>` + plainRule("b", "1") + plainRule("a", "2") + plainRule("c", "2") + `</LifecycleConfiguration>`, two, false},
		{"a rule less", "lifecycle", `<LifecycleConfiguration>` + plainRule("b", "1") + `</LifecycleConfiguration>`, two, false},

		{"the account's key", "encryption", kms("", ""), withKey(""), true},
		{"the account's key by its name", "encryption", kms(keyID("arn:aws:kms:eu-west-1:123456789012:alias/aws/s3"), ""), withKey(""), true},
		{"some key", "encryption", kms(keyID("1234"), ""), withKey(""), false},
		{"a key as its ARN", "encryption", kms(keyID("arn:aws:kms:eu-west-1:123456789012:key/1234"), ""), withKey("1234"), true},
		{"an alias as its ARN", "encryption", kms(keyID("arn:aws:kms:eu-west-1:123456789012:alias/x"), ""), withKey("alias/x"), true},
		{"a key that ends the same", "encryption", kms(keyID("arn:aws:kms:eu-west-1:123456789012:key/91234"), ""), withKey("1234"), false},
		{"no key", "encryption", kms("", ""), withKey("1234"), false},
		{"a bucket key that is off", "encryption", kms("", "<BucketKeyEnabled>false</BucketKeyEnabled>"), withKey(""), true},
		{"a bucket key", "encryption", kms("", "<BucketKeyEnabled>true</BucketKeyEnabled>"), withKey(""), false},
		{"what else is blocked", "encryption", kms("", "<BlockedEncryptionTypes><EncryptionType>SSE-C</EncryptionType></BlockedEncryptionTypes>"), withKey(""), true},
		{"another algorithm", "encryption", strings.Replace(kms("", ""), "aws:kms", "AES256", 1), withKey(""), false},

		{"a block without its falses", "publicAccessBlock", `<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls></PublicAccessBlockConfiguration>`,
			block(v1.PublicAccessBlock{BlockPublicACLs: true}), true},
		{"a block more", "publicAccessBlock", `<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls><IgnorePublicAcls>true</IgnorePublicAcls></PublicAccessBlockConfiguration>`,
			block(v1.PublicAccessBlock{BlockPublicACLs: true}), false},
		{"nothing is blocked", "", "", block(v1.PublicAccessBlock{}), true},

		{"a lock without retention", "object-lock", locked(""), lock(nil), true},
		{"a lock with retention", "object-lock", locked(threeDays), lock(nil), false},
		{"the same retention", "object-lock", locked(threeDays), lock(&v1.DefaultRetention{Mode: "Governance", Days: days(3)}), true},
		{"the same retention with zero years", "object-lock", locked(strings.Replace(threeDays, "</Days>", "</Days><Years>0</Years>", 1)), lock(&v1.DefaultRetention{Mode: "Governance", Days: days(3)}), true},
		{"a stricter retention", "object-lock", locked(strings.Replace(threeDays, "GOVERNANCE", "COMPLIANCE", 1)), lock(&v1.DefaultRetention{Mode: "Governance", Days: days(3)}), false},
		{"years for days", "object-lock", locked(strings.ReplaceAll(threeDays, "Days", "Years")), lock(&v1.DefaultRetention{Mode: "Governance", Days: days(3)}), false},
		{"no lock", "object-lock", `<ObjectLockConfiguration/>`, lock(nil), false},

		{"origins in another order", "cors", origin(corsRule), cors, true},
		{"a rule's name and a zero age", "cors", origin(`<ID>x</ID><MaxAgeSeconds>0</MaxAgeSeconds>` + corsRule), cors, true},
		{"another age", "cors", origin(`<MaxAgeSeconds>5</MaxAgeSeconds>` + corsRule), cors, false},
		{"a header more", "cors", origin(`<AllowedHeader>x</AllowedHeader>` + corsRule), cors, false},
		{"an origin more", "cors", origin(`<AllowedOrigin>c</AllowedOrigin>` + corsRule), cors, false},

		{"a tag without a value", "tagging", `<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>`, tags, true},
		{"a tag with a value", "tagging", `<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>`, tags, false},
		{"another tag", "tagging", `<Tagging><TagSet><Tag><Key>b</Key><Value></Value></Tag></TagSet></Tagging>`, tags, false},
		{"a suspended versioning", "versioning", `<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>`, &v1.StorageBucketSpec{Versioning: "Enabled"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := &fakeBucket{}
			if tc.document != "" {
				fake.write(tc.document, tc.text)
			}
			s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
			for _, setting := range Settings(tc.spec) {
				expectHeld(t, s, "photos", setting, tc.held)
				must(t, s.Apply(t.Context(), "photos", setting))
				expectHeld(t, s, "photos", setting, true)
			}
		})
	}
}

func TestTheOrderOfCORSRulesCounts(t *testing.T) {
	fake := &fakeBucket{}
	s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
	spec := fullSpec("photos")
	must(t, s.Apply(t.Context(), "photos", settingNamed(t, spec, "cors")))
	spec.CORS[0], spec.CORS[1] = spec.CORS[1], spec.CORS[0]
	expectHeld(t, s, "photos", settingNamed(t, spec, "cors"), false)
}

func TestEncryptionThatIsBlockedStaysBlocked(t *testing.T) {
	fake := &fakeBucket{}
	s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
	fake.write("encryption", `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>`+
		`</ApplyServerSideEncryptionByDefault><BlockedEncryptionTypes><EncryptionType>SSE-C</EncryptionType></BlockedEncryptionTypes></Rule></ServerSideEncryptionConfiguration>`)
	setting := settingNamed(t, fullSpec("photos"), "encryption")
	expectHeld(t, s, "photos", setting, false)
	must(t, s.Apply(t.Context(), "photos", setting))
	expectHeld(t, s, "photos", setting, true)
	if sent := fake.lastSent(); !strings.Contains(sent, "<EncryptionType>SSE-C</EncryptionType>") {
		t.Error(sent)
	}
}

func TestRemovingTheRetentionLeavesTheLock(t *testing.T) {
	fake := &fakeBucket{}
	s := storeAt(t, faultserver.Start(t, faultserver.Behind(fake)))
	must(t, s.Apply(t.Context(), "photos", settingNamed(t, fullSpec("photos"), "objectLock")))
	must(t, s.Remove(t.Context(), "photos", v1.AppliedConfiguration{Name: "objectLock"}))
	expectHeld(t, s, "photos", settingNamed(t, &v1.StorageBucketSpec{ObjectLock: &v1.ObjectLock{}}, "objectLock"), true)
}
