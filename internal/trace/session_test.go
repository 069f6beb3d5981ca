package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestReviewsLinesCommitsAndGrantsAreReadBack(t *testing.T) {
	patch := base64.StdEncoding.EncodeToString([]byte(`[{"op":"add","path":"/spec/size","value":3}]`))
	log := NewLog(time.Now())
	log.Record(Entry{At: 5, Review: &Review{
		Path: "/mutate", Code: 200, Took: 7, Held: 2,
		RawRequest:  NewBody([]byte(`{"kind":"AdmissionReview","request":{"uid":"u","object":{"kind":"W"}}}`), inJSON, ""),
		RawResponse: NewBody([]byte(`{"kind":"AdmissionReview","response":{"uid":"u","allowed":true,"patch":"`+patch+`"}}`), inJSON, ""),
	}})
	log.Record(Entry{At: 6, Instance: "controller-1", Line: &Line{Stream: "stderr", Text: `{"level":"info"}`}})
	log.Record(Entry{At: 7, Commit: &Commit{Revision: 9, Op: "created", Kind: "ConfigMap", Namespace: "a", Name: "b", Object: map[string]any{"kind": "ConfigMap"}}})
	log.Record(Entry{At: 8, Grants: &Grants{
		Account: "a/manager", Unknown: []string{"cluster-admin"},
		Roles: []Role{{Kind: "Role", Name: "r", Namespace: "a", File: "role.yaml", Idle: map[string]string{"leases": "no election"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}},
	}})
	var out bytes.Buffer
	if _, err := log.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	header, got, err := Read(&out)
	if err != nil || header.Version != 2 {
		t.Fatalf("version %d, %v", header.Version, err)
	}
	want := log.Entries()
	want[0].Review = &Review{
		Path: "/mutate", Code: 200, Took: 7, Held: 2,
		Request:  json.RawMessage(`{"kind":"AdmissionReview","request":{"object":{"kind":"W"},"uid":"u"}}`),
		Response: json.RawMessage(`{"kind":"AdmissionReview","response":{"allowed":true,"patch":[{"op":"add","path":"/spec/size","value":3}],"uid":"u"}}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATraceWithoutNewEntriesCanBeReadByAnOlderKoboshi(t *testing.T) {
	log := NewLog(time.Now())
	log.Record(Entry{Step: &Step{Name: "a", What: "started"}})
	var out bytes.Buffer
	if _, err := log.WriteTo(&out); err != nil || !strings.HasPrefix(out.String(), `{"version":1,`) {
		t.Errorf("%v, %s", err, out.String())
	}
}

func TestNoSecretValueIsInAWrittenReview(t *testing.T) {
	const value = "open-sesame-1234"
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	js := func(s string) Body { return NewBody([]byte(s), inJSON, "") }
	patch := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	const secrets = `"resource":{"group":"","version":"v1","resource":"secrets"}`
	const widgets = `"resource":{"group":"x.io","version":"v1","resource":"widgets"}`
	for name, r := range map[string]Review{
		"object":              {RawRequest: js(`{"request":{` + secrets + `,"object":{"kind":"Secret","data":{"p":"` + encoded + `"}},"oldObject":{"stringData":{"p":"` + value + `"}}}}`)},
		"in another object":   {RawRequest: js(`{"request":{` + widgets + `,"object":{"kind":"W","spec":{"template":{"kind":"Secret","stringData":{"p":"` + value + `"}}}}}}`)},
		"packed":              {RawRequest: NewBody(packed(`{"request":{`+secrets+`,"object":{"data":{"p":"`+encoded+`"}}}}`), inJSON, "gzip")},
		"patch of a Secret":   {RawRequest: js(`{"request":{` + secrets + `}}`), RawResponse: js(`{"response":{"patch":"` + patch(`[{"op":"add","path":"/data/p","value":"`+encoded+`"},{"op":"add","path":"/stringData","value":{"q":"`+value+`"}}]`) + `"}}`)},
		"patch with one":      {RawRequest: js(`{"request":{` + widgets + `}}`), RawResponse: js(`{"response":{"patch":"` + patch(`[{"op":"add","path":"/spec","value":{"kind":"Secret","stringData":{"q":"`+value+`"}}}]`) + `"}}`)},
		"damaged patch":       {RawRequest: js(`{"request":{` + widgets + `}}`), RawResponse: js(`{"response":{"patch":"` + patch(value) + `"}}`)},
		"patch not in base64": {RawRequest: js(`{"request":{` + widgets + `}}`), RawResponse: js(`{"response":{"patch":"{` + value + `}"}}`)},
		"messages":            {RawRequest: js(`{"request":{` + secrets + `}}`), RawResponse: js(`{"response":{"status":{"code":403,"message":"bad: ` + value + `","details":{"causes":[{"message":"` + value + `"}]}},"warnings":["` + value + `"],"auditAnnotations":{"a":"` + value + `"}}}`)},
		"unknown request":     {RawRequest: js(`{`), RawResponse: js(`{"response":{"status":{"message":"bad: ` + value + `"}}}`)},
		"by requestResource":  {RawRequest: js(`{"request":{"requestResource":{"version":"v1","resource":"secrets"}}}`), RawResponse: js(`{"response":{"warnings":["` + value + `"]}}`)},
		"conversion":          {RawRequest: js(`{"request":{"objects":[{"kind":"W","spec":{"kind":"Secret","data":{"p":"` + encoded + `"}}}]}}`), RawResponse: js(`{"response":{"convertedObjects":[{"spec":{"kind":"Secret","stringData":{"p":"` + value + `"}}}]}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			request, _ := r.RequestObject()
			response, _ := r.ResponseObject()
			shown := string(out) + fmt.Sprint(request, response) + fmt.Sprintf("%v %+v %#v", r.RawRequest, r.RawResponse, r)
			for _, s := range []string{value, encoded, patch(value)} {
				if strings.Contains(shown, s) {
					t.Errorf("%s is in %s", s, shown)
				}
			}
			if !strings.Contains(string(out), redactedPrefix) {
				t.Errorf("nothing shows that something was redacted: %s", out)
			}
			var again Review
			if err := json.Unmarshal(out, &again); err != nil {
				t.Fatal(err)
			}
			if second, err := json.Marshal(again); err != nil || string(second) != string(out) {
				t.Errorf("written again it is %s, %v, and was %s", second, err, out)
			}
		})
	}
}

func TestTheReasonOfARefusalIsKept(t *testing.T) {
	r := Review{
		RawRequest:  NewBody([]byte(`{"request":{"resource":{"group":"","version":"v1","resource":"secrets"}}}`), inJSON, ""),
		RawResponse: NewBody([]byte(`{"response":{"allowed":false,"status":{"code":403,"reason":"Forbidden","message":"m"}}}`), inJSON, ""),
	}
	got, err := r.ResponseObject()
	status := got["response"].(map[string]any)["status"].(map[string]any)
	if err != nil || status["code"] != int64(403) || status["reason"] != "Forbidden" || status["message"] == "m" {
		t.Errorf("%v, %v", status, err)
	}
}

func TestNoSecretValueIsInAWrittenCommit(t *testing.T) {
	const value = "open-sesame-1234"
	for name, c := range map[string]Commit{
		"Secret":   {Kind: "Secret", Object: map[string]any{"data": map[string]any{"p": value}}},
		"embedded": {Group: "x.io", Kind: "W", Object: map[string]any{"spec": map[string]any{"kind": "Secret", "stringData": map[string]any{"p": value}}}},
	} {
		before := fmt.Sprint(c.Object)
		out, err := json.Marshal(c)
		if err != nil || strings.Contains(string(out), value) || strings.Contains(fmt.Sprint(c.Redacted()), value) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
		if fmt.Sprint(c.Object) != before {
			t.Errorf("%s: the shared object was changed", name)
		}
	}
}

func TestLinesOfAnOutputAreWhole(t *testing.T) {
	log := NewLog(time.Now())
	lines := NewLines(log, "controller-1", "stderr")
	for _, part := range []string{"one\r\ntw", "o\n\nthree", "\n", strings.Repeat("x", longestLine), "yy\n", "\xff", "end"} {
		if n, err := lines.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lines.Close(); err != nil {
		t.Fatal(err)
	}
	var got []Line
	for _, e := range log.Entries() {
		got = append(got, *e.Line)
	}
	want := []Line{
		{"stderr", "one", 0}, {"stderr", "two", 0}, {"stderr", "", 0}, {"stderr", "three", 0},
		{"stderr", strings.Repeat("x", longestLine), 2}, {"stderr", "\uFFFDend", 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAValueThatBecomesSecretLaterIsNotWritten(t *testing.T) {
	known := strings.NewReplacer("first", "[secret value]")
	log := NewLog(time.Now())
	log.Scrub = func(s string) string { return known.Replace(s) }
	log.Record(Entry{Line: &Line{Text: "first and second"}})
	if got := log.Entries()[0].Line.Text; got != "[secret value] and second" {
		t.Errorf("recorded %q", got)
	}
	known = strings.NewReplacer("second", "[secret value]")
	var out bytes.Buffer
	if _, err := log.WriteTo(&out); err != nil || strings.Contains(out.String(), "second") {
		t.Errorf("%v, %s", err, out.String())
	}
}

func TestAReaderThatFollowsSeesEachEntryOnceEvenIfOldOnesAreDropped(t *testing.T) {
	const most, n = 10, 1000
	log := NewLog(time.Now())
	log.Most = most
	go func() {
		for range n {
			log.Record(Entry{Step: &Step{}})
		}
	}()
	var last int64
	for last < n {
		next := log.Recorded()
		entries := log.After(last)
		if len(entries) == 0 {
			<-next
			continue
		}
		for _, e := range entries {
			if e.Seq <= last {
				t.Fatalf("entry %d after %d", e.Seq, last)
			}
			last = e.Seq
		}
	}
	kept := log.Entries()
	if len(kept) < most || len(kept) >= 2*most || kept[len(kept)-1].Seq != n || kept[0].Seq != n-int64(len(kept))+1 {
		t.Errorf("%d entries from %d", len(kept), kept[0].Seq)
	}
	if got := log.After(n - 3); len(got) != 3 || len(log.After(n)) != 0 || len(log.After(n+5)) != 0 {
		t.Errorf("%d entries after %d", len(got), n-3)
	}
}
