package scrub

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestValuesAreRemovedInAllForms(t *testing.T) {
	var s Set
	s.Add(`pass"word<4711>`)
	s.Keep("token-0815")
	html, _ := json.Marshal(`pass"word<4711>`)
	for _, text := range []string{
		`login with pass"word<4711> failed`, `{"password":"pass\"word<4711>"}`, string(html),
		base64.StdEncoding.EncodeToString([]byte(`pass"word<4711>`)), "Bearer token-0815", "x" + base64.RawStdEncoding.EncodeToString([]byte("token-0815")),
	} {
		got := s.Text(text)
		if strings.Contains(got, "4711") || strings.Contains(got, "0815") || !strings.Contains(got, "[secret value]") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestOrdinaryWordsAreKept(t *testing.T) {
	var s Set
	s.Add("a1!", "default", "kube-system", "true", "100000", "")
	const text = `default kube-system true a1! 100000`
	if got := s.Text(text); got != text {
		t.Errorf("got %q", got)
	}
}

func TestLinesOfAKeyAreRemovedOneByOne(t *testing.T) {
	var s Set
	s.Add("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n")
	got := s.Text("-----BEGIN KEY-----\n  MIIEvQIBADANBgkqhkiG9w0B\n")
	if got != "-----BEGIN KEY-----\n  [secret value]\n" {
		t.Errorf("got %q", got)
	}
}

func TestStructuredValuesKeepTheirStructure(t *testing.T) {
	var s Set
	s.Add("hunter-4711")
	v := struct {
		Text string
		List []string
	}{"hunter-4711", []string{"x", `"hunter-4711"`}}
	if err := JSON(&s, &v); err != nil || v.Text != mark || v.List[0] != "x" || v.List[1] != `"`+mark+`"` {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestKeptValuesSurviveManyOthers(t *testing.T) {
	var s Set
	s.Keep("kept-0815")
	for i := range most + 10 {
		s.Add(fmt.Sprintf("value-number-%d", i))
	}
	if got := s.Text("kept-0815 " + fmt.Sprintf("value-number-%d", most+9)); got != mark+" "+mark {
		t.Errorf("got %q", got)
	}
	if n := len(s.recent) + len(s.older); n > most {
		t.Errorf("%d values are known", n)
	}
}

func TestTheLastValuesAreNotForgotten(t *testing.T) {
	var s Set
	for i := range 3 * most {
		s.Add(fmt.Sprintf("value-number-%d", i))
		if i%most != 0 {
			continue
		}
		for _, last := range []int{i, max(i-1, 0), max(i-most/3, 0)} {
			if text := fmt.Sprintf("value-number-%d", last); s.Text(text) != mark {
				t.Fatalf("after %d values, %s is forgotten", i+1, text)
			}
		}
	}
}

// BenchmarkNewValue measures the cost of adding one new value before each text.
func BenchmarkNewValue(b *testing.B) {
	var s Set
	for i := range most {
		sum := sha256.Sum256(fmt.Append(nil, i))
		s.Add(hex.EncodeToString(sum[:]))
	}
	for i := range b.N {
		s.Add(fmt.Sprintf("value-number-%d", i))
		s.Text("a text")
	}
}

func TestNamesOfObjectsAreNotSecret(t *testing.T) {
	var s Set
	s.Add("cluster1-superuser-9", "later-4711-user", "s3cret-Passw0rd")
	s.Name("cluster1-superuser-9")
	s.Name("another-0815-name")
	s.Add("another-0815-name")
	s.Keep("given-by-the-user-1")
	s.Name("given-by-the-user-1")
	const text = "Secret cluster1-superuser-9 of another-0815-name"
	if got := s.Text(text); got != text {
		t.Errorf("got %q", got)
	}
	if got := s.Text("s3cret-Passw0rd given-by-the-user-1"); got != "[secret value] [secret value]" {
		t.Errorf("got %q", got)
	}
}
