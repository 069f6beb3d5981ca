package s3store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

func TestParseEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:9000":              "http://127.0.0.1:9000",
		"https://s3.example.com/":            "https://s3.example.com",
		"https://x.example.com/storage/s3//": "https://x.example.com/storage/s3",
		"http://[::1]:9000":                  "http://[::1]:9000",
		"HTTP://host":                        "http://host",
	} {
		u, err := ParseEndpoint(in)
		if err != nil || u.String() != want {
			t.Errorf("%q: got %v, %v, want %s", in, u, err, want)
		}
	}
	for _, in := range []string{
		"", "host", "host:9000", "//host", "ftp://host", "http://", "http:///bucket", "http:host",
		"http://user@host", "http://user:pass@host", "http://host?x=1", "http://host#x", "http://host/?",
		"http://host:", "http://host:0", "http://host:65536", "http://host:http", "http://ho st", "http://host/\x00", "http://[::1",
		"http://bücher.example", "http://１２７.0.0.1", "http://%e2%91%a0.example",
	} {
		if u, err := ParseEndpoint(in); err == nil {
			t.Errorf("%q: got %s, want an error", in, u)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"http://127.0.0.1:9000", "https://s3.example.com/a/b/", "http://u:p@h", "http://[::1%25lo]:1", "http://h:0", "http://h/%2f/", "http://h/..//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseEndpoint(s)
		if err != nil {
			if len(s) > 12 && strings.Contains(err.Error(), s) {
				t.Fatalf("error repeats its input: %v", err)
			}
			return
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" {
			t.Fatalf("%q accepted as %#v", s, u)
		}
		again, err := ParseEndpoint(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q gives %q, which gives %v, %v", s, u, again, err)
		}
		// New must accept every endpoint that ParseEndpoint accepts.
		if New(Config{Endpoint: u, Region: "us-east-1", PathStyle: true}) == nil {
			t.Fatal("no store")
		}
	})
}

func TestCredentialsNeverPrint(t *testing.T) {
	c := Credentials{AccessKeyID: testKeyID, SecretAccessKey: testSecret, SessionToken: testToken}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		_, _ = fmt.Fprintf(&out, verb, c)
		_, _ = fmt.Fprintf(&out, verb, &c)
		_, _ = fmt.Fprintf(&out, verb, Config{Credentials: c})
		_, _ = fmt.Fprintf(&out, verb, guarded(c))
		store := New(Config{Endpoint: &url.URL{Scheme: "http", Host: "x"}, Credentials: c})
		_, _ = fmt.Fprintf(&out, verb, store)
		_, _ = fmt.Fprintf(&out, verb, *store)
		_, _ = fmt.Fprintf(&out, verb, *store.prober)
		_, _ = fmt.Fprintf(&out, verb, store.client.Options())
	}
	_ = json.NewEncoder(&out).Encode(map[string]any{"c": c, "p": &c})
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "c", c, "p", &c)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "c", c, "p", &c)
	for _, secret := range []string{testKeyID, testSecret, testToken, fmt.Sprintf("%x", testSecret), fmt.Sprintf("%d", []byte(testSecret))} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q in %s", secret, out.String())
		}
	}
	keys, err := c.Retrieve(t.Context())
	if err != nil || keys.AccessKeyID != testKeyID || keys.SecretAccessKey != testSecret || keys.SessionToken != testToken {
		t.Error("the signer does not get the keys")
	}
}
