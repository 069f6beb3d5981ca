package logline

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	time.Local = time.FixedZone("here", 2*60*60)
	os.Exit(m.Run())
}

// clock returns the time of day of a line's time, in the local zone.
func clock(t time.Time) string { return t.Local().Format("15:04:05.000") }

func text(key, value string) Field { return Field{Key: key, Value: value} }

func data(key, value string) Field { return Field{Key: key, Value: value, JSON: true} }

// The lines are what the loggers print: zap as controller-runtime v0.25 configures it, klog
// v2.140, Go's log/slog, logrus v1.9, pino, Python's logging and kopf.
func TestALineOfEachLoggerIsParsedCompletely(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		clock string
		want  Line
	}{
		"zap JSON": {
			`{"level":"error","ts":"2026-11-26T03:30:36Z","logger":"ship","caller":"controller/ship.go:7","msg":"Reconciler error","Ship":{"name":"a","namespace":"default"},"namespace":"default","replicas":3,"namespace":"x","error":"deployments.apps \"a\" is forbidden"}`,
			"05:30:36.000",
			Line{Format: JSON, Stamp: "2026-11-26T03:30:36Z", Level: Error, Severity: "error", Logger: "ship", Caller: "controller/ship.go:7", Message: "Reconciler error", Fields: []Field{
				data("Ship", `{"name":"a","namespace":"default"}`), text("namespace", "default"), data("replicas", "3"), text("namespace", "x"), text("error", `deployments.apps "a" is forbidden`),
			}},
		},
		"zap JSON with a number as its time": {
			`{"level":"info","ts":1764127836.460928,"msg":"starting manager"}`, "05:30:36.460",
			Line{Format: JSON, Stamp: "1764127836.460928", Level: Info, Severity: "info", Message: "starting manager", Fields: []Field{}},
		},
		"zap console": {
			"2026-11-26T03:30:36.5Z\tINFO\tcontroller-runtime.metrics\tServing metrics server\t" + `{"bindAddress": ":8443", "secure": true}`, "05:30:36.500",
			Line{Format: Console, Stamp: "2026-11-26T03:30:36.5Z", Level: Info, Severity: "INFO", Logger: "controller-runtime.metrics", Message: "Serving metrics server", Fields: []Field{text("bindAddress", ":8443"), data("secure", "true")}},
		},
		"zap console in color, with a caller and a tab in the message": {
			"2026-11-26T03:30:36Z\t\x1b[33mWARN\x1b[0m\tship/ship.go:12\ta b\tc", "05:30:36.000",
			Line{Format: Console, Stamp: "2026-11-26T03:30:36Z", Level: Warning, Severity: "WARN", Caller: "ship/ship.go:12", Message: "a b\tc"},
		},
		"zap console below debug, without a message": {
			"2026-11-26T03:30:36Z\tLEVEL(-5)\t\t{}", "05:30:36.000",
			Line{Format: Console, Stamp: "2026-11-26T03:30:36Z", Level: Debug, Severity: "LEVEL(-5)", Fields: []Field{}},
		},
		"klog": {
			`I1126 03:30:36.460973    1934 main.go:48] "Updated" logger="foo" pod="default/a" worker count=2 q="say \"hi\"" s={"A":1,"B":2} old={A:1 B:2} after=true`, "03:30:36.460",
			Line{Format: Klog, Stamp: "1126 03:30:36.460973", Level: Info, Severity: "I", Logger: "foo", Caller: "main.go:48", Message: "Updated", Fields: []Field{
				text("pod", "default/a"), text("worker count", "2"), text("q", `say "hi"`), data("s", `{"A":1,"B":2}`), text("old", "{A:1 B:2}"), text("after", "true"), text("pid", "1934"),
			}},
		},
		"klog with several lines": {
			"E1126 03:30:36.460973    1934 main.go:48] \"Updated\" multi=<\n\tline 1\n\t\tline 2\n > after=true", "03:30:36.460",
			Line{Format: Klog, Stamp: "1126 03:30:36.460973", Level: Error, Severity: "E", Caller: "main.go:48", Message: "Updated", Fields: []Field{
				text("multi", "line 1\n\tline 2"), text("after", "true"), text("pid", "1934"),
			}},
		},
		"klog without structure": {
			`W1126 03:30:36.460933    1934 main.go:47] "quoted" and more`, "03:30:36.460",
			Line{Format: Klog, Stamp: "1126 03:30:36.460933", Level: Warning, Severity: "W", Caller: "main.go:47", Message: `"quoted" and more`, Fields: []Field{text("pid", "1934")}},
		},
		"slog": {
			`time=2026-11-26T03:30:36.461Z level=ERROR+2 source=main.go:12 msg=failed err="it's \"bad\"" "a key"=1 e="" g.x=y=z`, "05:30:36.461",
			Line{Format: Pairs, Stamp: "2026-11-26T03:30:36.461Z", Level: Error, Severity: "ERROR+2", Caller: "main.go:12", Message: "failed", Fields: []Field{
				text("err", `it's "bad"`), text("a key", "1"), text("e", ""), text("g.x", "y=z"),
			}},
		},
		"slog JSON": {
			`{"time":"2026-11-26T03:30:36.461193907Z","level":"WARN","source":{"file":"main.go","line":56},"msg":"careful"}`, "05:30:36.461",
			Line{Format: JSON, Stamp: "2026-11-26T03:30:36.461193907Z", Level: Warning, Severity: "WARN", Message: "careful", Fields: []Field{data("source", `{"file":"main.go","line":56}`)}},
		},
		"slog without a handler": {
			"2026/11/26 03:30:36 INFO default handler a=1 b=\"c d\"", "03:30:36.000",
			Line{Format: Text, Stamp: "2026/11/26 03:30:36", Level: Info, Severity: "INFO", Message: "default handler", Fields: []Field{text("a", "1"), text("b", "c d")}},
		},
		"logrus": {
			`time="2026-11-26T03:30:36Z" level=warning msg="slow sync" omg=true`, "05:30:36.000",
			Line{Format: Pairs, Stamp: "2026-11-26T03:30:36Z", Level: Warning, Severity: "warning", Message: "slow sync", Fields: []Field{text("omg", "true")}},
		},
		"Kubernetes' JSON, information": {
			`{"ts":1764127836460.928,"caller":"app/server.go:1","msg":"Started","v":0}`, "05:30:36.460",
			Line{Format: JSON, Stamp: "1764127836460.928", Level: Info, Caller: "app/server.go:1", Message: "Started", Fields: []Field{data("v", "0")}},
		},
		"Kubernetes' JSON, an error": {
			`{"ts":1764127836460.928,"msg":"Failed","err":"no"}`, "05:30:36.460",
			Line{Format: JSON, Stamp: "1764127836460.928", Level: Error, Message: "Failed", Fields: []Field{text("err", "no")}},
		},
		"pino": {
			`{"level":50,"time":1764127836460,"pid":1,"msg":"it failed"}`, "05:30:36.460",
			Line{Format: JSON, Stamp: "1764127836460", Level: Error, Severity: "50", Message: "it failed", Fields: []Field{data("pid", "1")}},
		},
		"kopf": {
			"[2026-11-26 03:30:36,461] kopf.objects         [INFO    ] [default/a] Creation is processed: 1 succeeded; 0 failed.", "03:30:36.461",
			Line{Format: Text, Stamp: "2026-11-26 03:30:36,461", Level: Info, Severity: "INFO", Logger: "kopf.objects", Message: "Creation is processed: 1 succeeded; 0 failed.", Fields: []Field{text("object", "default/a")}},
		},
		"kopf JSON": {
			`{"message":"Handler 'create' succeeded.","object":{"apiVersion":"x.io/v1","kind":"Ship","name":"a","namespace":"default"},"timestamp":"2026-11-26T03:30:36.461000+00:00","severity":"info"}`, "05:30:36.461",
			Line{Format: JSON, Stamp: "2026-11-26T03:30:36.461000+00:00", Level: Info, Severity: "info", Message: "Handler 'create' succeeded.", Fields: []Field{data("object", `{"apiVersion":"x.io/v1","kind":"Ship","name":"a","namespace":"default"}`)}},
		},
		"Python, by default":  {"WARNING:root.sub:careful", "", Line{Format: Text, Level: Warning, Severity: "WARNING", Logger: "root.sub", Message: "careful"}},
		"Python, with dashes": {"2026-11-26 03:30:36,461 - ship - ERROR - it failed: a=1", "03:30:36.461", Line{Format: Text, Stamp: "2026-11-26 03:30:36,461", Level: Error, Severity: "ERROR", Logger: "ship", Message: "it failed: a=1"}},
		"another with a time": {"2026-11-26T03:30:36.461Z  INFO reconciling", "05:30:36.461", Line{Format: Text, Stamp: "2026-11-26T03:30:36.461Z", Level: Info, Severity: "INFO", Message: "reconciling"}},
		"bytes that are no UTF-8": {
			"{\"level\":\"info\",\"msg\":\"a\xffb\"}", "",
			Line{Format: JSON, Level: Info, Severity: "info", Message: `a\xffb`, Fields: []Field{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Parse(c.text)
			if !ok {
				t.Fatal("not recognized")
			}
			if at := clock(got.Time); c.clock != "" && at != c.clock || c.clock == "" && !got.Time.IsZero() {
				t.Errorf("the time is %s, want %s", at, c.clock)
			}
			got.Time = time.Time{}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherOutputIsNoLineOfALog(t *testing.T) {
	for _, text := range []string{
		"2026/11/26 10:00:00 Error handler registered",
		"2026/11/26 10:00:00 Debug server listening on :6060",
		"", "hello world", "{", "{}", `{"msg":`, `{"msg":"a"} {"msg":"b"}`, `{"message":"a value"}`, `{"level":"info"}`, `["msg"]`,
		"a\tINFO\tb", "2026-11-26T03:30:36Z\tINFO", "2026-11-26T03:30:36Z\tmore\ttext",
		"I1126 main.go:12] x", "I am a text", `msg="a"`, `level=info msg="a`, "level=info msg=a and words", "level=info",
		"2026/11/26 03:30:36 listening on :8080", "2026-11-26 and more", "ERROR: it failed", "INFO:",
		"panic: it failed", "goroutine 1 [running]:", "\tmain.go:12", "Traceback (most recent call last):",
	} {
		if line, ok := Parse(text); ok {
			t.Errorf("%q was parsed as %+v", text, line)
		}
	}
}

func TestAValueOfSeveralLinesBeginsContinuesAndEnds(t *testing.T) {
	if !Begins(`I1126 03:30:36.460973    1934 main.go:48] "Updated" multi=<`) || Begins(`"Updated" multi=<`) || Begins("I1126 03:30:36.460973    1934 main.go:48] a < b") {
		t.Error("the beginning is not recognized, or something else is")
	}
	for text, want := range map[string][2]bool{
		"\tline": {true, false}, " >": {true, true}, " > a=1": {true, true}, " > next=<": {true, false}, "other": {false, false},
	} {
		if continues, complete := Continues(text); continues != want[0] || complete != want[1] {
			t.Errorf("%q: %v, %v", text, continues, complete)
		}
	}
}

func TestAFieldIsTakenByTheFirstKeyThatFits(t *testing.T) {
	l := Line{Fields: []Field{data("error", "{}"), text("err", "no"), text("error", "yes")}}
	if f, ok := l.Take(IsText, "error", "err"); !ok || f.Value != "yes" {
		t.Errorf("took %+v", f)
	}
	if diff := cmp.Diff([]Field{data("error", "{}"), text("err", "no")}, l.Fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f, ok := l.Take(IsText, "other"); ok {
		t.Errorf("took %+v", f)
	}
}

// seeds are beginnings for the fuzzers.
var seeds = []string{
	`{"level":"info","ts":1.7e9,"msg":"a","a":{"b":[1]},"a":null}`,
	"2026-11-26T03:30:36Z\tERROR\tname\ta.go:1\tmessage\t{\"a\": 1}",
	"I1126 03:30:36.460973    1934 main.go:48] \"a\" b=<\n\tc\n > d=[1,{}] e={f g} h=\"i\"",
	`time=2026-11-26T03:30:36Z level=INFO msg="a b" "c d"=e`,
	"2026/11/26 03:30:36 INFO a b=c",
	"[2026-11-26 03:30:36,461] kopf.objects [INFO ] [a/b] c",
	"INFO:a:b",
}

func FuzzParseLosesNoWordOfALine(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		l, ok := Parse(line)
		if !ok || l.Format == JSON || l.Format == Console { // JSON may be escaped in several ways
			return
		}
		all := l.Stamp + l.Severity + l.Logger + l.Caller + l.Message
		for _, field := range l.Fields {
			all += field.Key + field.Value
		}
		for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r < 'a' || r > 'z' }) {
			if !strings.Contains(all, word) && !strings.ContainsAny(line, `\`) && !slices.Contains(keys, word) {
				t.Errorf("%q lacks %q: %+v", line, word, l)
			}
		}
	})
}

// keys are the names of the values that a line has outside its fields.
var keys = []string{"ts", "time", "timestamp", "level", "severity", "lvl", "levelname", "msg", "message", "event", "logger", "caller", "source"}

func FuzzParseKeepsEveryValueOfJSON(f *testing.F) {
	f.Add("a", "b", "c")
	f.Fuzz(func(t *testing.T, msg, key, value string) {
		line, err := json.Marshal(map[string]any{"msg": msg, "k" + key: value, "object": map[string]string{key: value}})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		l, ok := Parse(string(line))
		if !ok {
			t.Fatalf("%s is not recognized", line)
		}
		got := map[string]any{"msg": l.Message}
		for _, f := range l.Fields {
			got[f.Key] = f.Value
			if f.JSON {
				var value any
				if err := json.Unmarshal([]byte(f.Value), &value); err != nil {
					t.Fatal(err)
				}
				got[f.Key] = value
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
