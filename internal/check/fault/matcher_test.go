package fault

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// hash is a simple change function: it hashes the body as it is.
func hash(call *trace.Call) string {
	sum := sha256.Sum256(call.Request)
	return hex.EncodeToString(sum[:4])
}

func stars(namespace, name, resource string) string {
	head, _, _ := strings.Cut(name, "-gen")
	return namespace + "/" + head
}

func patchOf(name, body string) *trace.Call {
	return &trace.Call{
		Verb:   "patch",
		Target: trace.Target{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "default", Name: name},
		Path:   "/apis/apps/v1/namespaces/default/deployments/" + name, Request: json.RawMessage(body),
	}
}

func TestAPointSaysWhatARequestIsAbout(t *testing.T) {
	tests := []struct {
		name string
		call *trace.Call
		want Point
	}{
		{"a patch", patchOf("a-gen17", `{}`),
			Point{Step: "s", Verb: "patch", Resource: "deployments.apps", Object: "default/a", Change: hash(&trace.Call{Request: []byte(`{}`)})}},
		{"a creation by the name in its body",
			&trace.Call{Verb: "create", Target: trace.Target{Resource: "pods", Namespace: "d"}, Request: []byte(`{"metadata":{"name":"b-gen1"}}`)},
			Point{Step: "s", Verb: "create", Resource: "pods", Object: "d/b", Change: hash(&trace.Call{Request: []byte(`{"metadata":{"name":"b-gen1"}}`)})}},
		{"a creation that the server names, though the answer has the name",
			&trace.Call{Verb: "create", Target: trace.Target{Resource: "pods", Namespace: "d", Name: "c-xyz12"}, Request: []byte(`{"metadata":{"generateName":"c-"}}`)},
			Point{Step: "s", Verb: "create", Resource: "pods", Object: "d/c-*", Change: hash(&trace.Call{Request: []byte(`{"metadata":{"generateName":"c-"}}`)})}},
		{"a creation of a subresource by the name in the path",
			&trace.Call{Verb: "create", Target: trace.Target{Resource: "pods", Subresource: "eviction", Namespace: "d", Name: "p"}, Request: []byte(`{"metadata":{"name":"q"}}`)},
			Point{Step: "s", Verb: "create", Resource: "pods/eviction", Object: "d/p", Change: hash(&trace.Call{Request: []byte(`{"metadata":{"name":"q"}}`)})}},
		{"a read, without a change",
			&trace.Call{Verb: "get", Target: trace.Target{Resource: "nodes", Name: "n"}},
			Point{Step: "s", Verb: "get", Resource: "nodes", Object: "/n"}},
		{"an endpoint, by path and names of parameters",
			&trace.Call{Verb: "get", Endpoint: "s3", Path: "/b/0f8fad5b-d9cb-469f-a165-70867728950e?lifecycle&X-Amz-Signature=abc&prefix=x"},
			Point{Step: "s", Verb: "get", Resource: "endpoint:s3", Object: "/b/UUID?lifecycle&prefix"}},
	}
	for _, tt := range tests {
		if got := PointOf(tt.call, "s", stars, hash); got != tt.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
}

func TestWithoutCanonicalNamesTheNamesAreThoseOfTheRequest(t *testing.T) {
	if got := PointOf(patchOf("a", `{}`), "s", nil, nil); got.Object != "default/a" || got.Change != "" {
		t.Errorf("got %+v", got)
	}
	if got := PointOf(&trace.Call{Verb: "get", Target: trace.Target{Resource: "nodes", Name: "n"}}, "s", nil, nil); got.Object != "n" {
		t.Errorf("got %+v", got)
	}
}

func TestAMatcherFindsTheWantedOccurrenceAndNoOther(t *testing.T) {
	call := patchOf("a-gen1", `{"x":1}`)
	p := PointOf(call, "s", stars, hash)
	p.Occurrence = 2
	m := NewMatcher(Fault{Kind: KillLost, Point: p}, stars, hash)

	other := patchOf("a-gen1", `{"x":2}`)
	status := patchOf("a-gen1", `{"x":1}`)
	status.Target.Subresource = "status"
	outside := &trace.Call{Verb: "patch", Endpoint: "s3", Path: "/"}
	var got []bool
	for _, c := range []*trace.Call{call, other, status, patchOf("b", `{"x":1}`), outside, patchOf("a-gen7", `{"x":1}`), call} {
		got = append(got, m.Match(c, "s"))
	}
	if want := "[false false false false false true false]"; fmt.Sprint(got) != want {
		t.Errorf("matched %v, want %s", got, want)
	}
}

func TestRequestsOfOtherStepsAreNotCounted(t *testing.T) {
	p := PointOf(patchOf("a", `{}`), "second", nil, hash)
	m := NewMatcher(Fault{Kind: Error500, Point: p}, nil, hash)
	if m.Match(patchOf("a", `{}`), "first") {
		t.Error("matched in another step")
	}
	if !m.Match(patchOf("a", `{}`), "second") {
		t.Error("the first request of the step is not matched: the one before was counted")
	}
}

func TestAnyBodyMatchesAPointWithoutChange(t *testing.T) {
	p := PointOf(patchOf("a", `{}`), "s", nil, nil)
	m := NewMatcher(Fault{Kind: Error500, Point: p}, nil, func(*trace.Call) string {
		t.Error("the body was hashed for nothing")
		return ""
	})
	if !m.Match(patchOf("a", `{"y":1}`), "s") {
		t.Error("not matched")
	}
}

func TestABodyIsHashedOnlyIfAllElseFits(t *testing.T) {
	p := PointOf(patchOf("a", `{}`), "s", nil, hash)
	m := NewMatcher(Fault{Kind: Error500, Point: p}, nil, func(*trace.Call) string {
		t.Error("hashed")
		return ""
	})
	get := patchOf("a", `{}`)
	get.Verb = "get"
	m.Match(get, "s")
	m.Match(patchOf("b", `{}`), "s")
	m.Match(patchOf("a", `{}`), "t")
}

func TestABurstIsThreeRequestsInARow(t *testing.T) {
	p := PointOf(patchOf("a", `{}`), "s", nil, nil)
	p.Occurrence = 2
	m := NewMatcher(Fault{Kind: ErrorBurst, Point: p}, nil, nil)
	var got []bool
	for range 6 {
		got = append(got, m.Match(patchOf("a", `{}`), "s"))
	}
	if want := "[false true true true false false]"; fmt.Sprint(got) != want {
		t.Errorf("matched %v, want %s", got, want)
	}
}

func TestFaultsThatAreNotAtARequestNeverMatch(t *testing.T) {
	for _, p := range []Point{{Step: "s"}, {Step: "s", Resource: "deployments.apps"}} {
		if NewMatcher(Fault{Kind: Restart, Point: p}, nil, nil).Match(patchOf("a", `{}`), "s") {
			t.Errorf("%v matched a request", p)
		}
	}
}

func TestOfManyAtOnceOneMatches(t *testing.T) {
	p := PointOf(patchOf("a", `{}`), "s", stars, hash)
	p.Occurrence = 40
	m := NewMatcher(Fault{Kind: KillLost, Point: p}, stars, hash)
	var matched atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10 {
				if m.Match(patchOf("a-gen3", `{}`), "s") {
					matched.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if matched.Load() != 1 {
		t.Errorf("%d of 80 requests matched, want 1", matched.Load())
	}
}

// BenchmarkMatch measures the cost of a fault for requests that it does not apply to. The
// cost should stay below a microsecond.
func BenchmarkMatch(b *testing.B) {
	body := `{"metadata":{"name":"a"},"spec":{"x":"` + strings.Repeat("y", 4000) + `"}}`
	p := PointOf(patchOf("a", body), "s", stars, hash)
	m := NewMatcher(Fault{Kind: KillLost, Point: p}, stars, hash)
	get := patchOf("a", body)
	get.Verb = "get"
	for name, call := range map[string]*trace.Call{
		"other verb": get, "other object": patchOf("b", body), "body too": patchOf("a", body+" "),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Match(call, "s")
			}
		})
	}
}

func TestEndedBurstMatchesNothingMore(t *testing.T) {
	call := patchOf("a", `{}`)
	f := Fault{Kind: ErrorBurst, Point: PointOf(call, "s", nil, nil)}
	for matched, left := range []int{0, 2, 1, 0} {
		m := NewMatcher(f, nil, nil)
		for range matched {
			if !m.Match(call, "s") {
				t.Fatal("not matched")
			}
		}
		if got := m.End(); got != left {
			t.Errorf("after %d matches, %d were left, want %d", matched, got, left)
		}
		if m.Match(call, "s") {
			t.Errorf("after %d matches and the end, another request matched", matched)
		}
		if again := m.End(); again != 0 {
			t.Errorf("a second end returned %d", again)
		}
	}
}
