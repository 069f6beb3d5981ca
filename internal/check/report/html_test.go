package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func htmlOf(t *testing.T, r *Report, traces map[string][]trace.Entry) string {
	t.Helper()
	return string(written(t, func(b *bytes.Buffer) error { return r.WriteHTML(b, traces) }))
}

func samplePage(t *testing.T) string {
	return htmlOf(t, sample(), map[string][]trace.Entry{"1a2b3c4d5e6f": sampleTrace()})
}

func TestPageAsksForNothingAndRunsNothingButItsOwn(t *testing.T) {
	page := samplePage(t)
	policy := html.UnescapeString(between(t, page, `http-equiv="Content-Security-Policy" content="`, `"`))
	for _, tag := range []string{"style", "script"} {
		text := between(t, page, "<"+tag+">", "</"+tag+">")
		sum := sha256.Sum256([]byte(text))
		if want := tag + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("the policy %q does not allow the page's own <%s>, %s", policy, tag, want)
		}
		page = strings.Replace(page, text, "", 1)
	}
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	for name, forbidden := range map[string]string{
		"an address": `https?://`, "a handler": `(?i)<[^>]*\son[a-z]+\s*=`, "a style attribute": `(?i)<[^>]*\sstyle\s*=`,
		"something that loads": `(?i)<(img|iframe|object|embed|video|audio|base|form|link rel="stylesheet")\b|\ssrc=`,
	} {
		if found := regexp.MustCompile(forbidden).FindString(page); found != "" {
			t.Errorf("the page has %s: %s", name, found)
		}
	}
	if strings.Contains(pageStyle, "url(") || strings.Contains(pageStyle, "@import") {
		t.Error("the style loads something")
	}
}

func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, before)
	inner, _, closed := strings.Cut(rest, after)
	if !found || !closed {
		t.Fatalf("nothing between %q and %q", before, after)
	}
	return inner
}

func TestPageShowsTheTimelineOfAFinding(t *testing.T) {
	page := html.UnescapeString(samplePage(t))
	for name, want := range map[string]string{
		"the kill":                   `<tr class="process bad"><td class="at">0.051 s</td><td>controller-1</td><td>killed</td>`,
		"the write":                  `POST secrets default/viewer-a-ca → 201`,
		"the fault":                  `applied the fault <span class="note">kill after the answer</span>`,
		"watch events in one row":    `saw ADDED pods default/a, default/b`,
		"an event that was held":     `saw MODIFIED pods default/a <span class="note">held back for 30 ms</span>`,
		"healing":                    `<tr class="healing"><td class="at">0.900 s</td><td></td><td>healing: restart</td>`,
		"the body of a write":        `"phase": "Pending"`,
		"the number of hidden reads": `2 successful reads are not shown`,
		"the strip":                  `<rect class="healing" x="750"`,
		"the life of an instance":    `<title>controller-2 ran from 0.060 s to 1.200 s</title>`,
		"the differences":            `<td class="want"><code>"Ready"</code></td><td class="got"><code>"Pending"</code></td>`,
		"the replay command":         `<code>koboshi check replay .koboshi/findings/DIVERGED-life-create-1a2b3c4d5e6f.json</code>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %s: %s", name, want)
		}
	}
	if strings.Contains(page, "BOOKMARK") {
		t.Error("bookmarks are shown that no fault delayed or sent")
	}
}

func TestPageNeverShowsWhatASecretHolds(t *testing.T) {
	entries := sampleTrace()
	entries[7].Call.Message = `Secret is invalid: data[key]: "hunter2"`
	page := html.UnescapeString(htmlOf(t, sample(), map[string][]trace.Entry{"1a2b3c4d5e6f": entries}))
	if strings.Contains(page, "aHVudGVyMg==") || strings.Contains(page, "hunter2") {
		t.Error("the value of a Secret is on the page")
	}
}

func TestPageCannotBeTakenOverByWhatAControllerWrote(t *testing.T) {
	r := sample()
	f := &r.Findings[0]
	f.Sentence, f.Detail, f.LastAction, f.Replay, f.Scenario, f.Verdict = hostile, hostile, hostile, hostile, hostile, hostile
	f.Differences = []state.Difference{{Object: hostile, Path: hostile, Want: hostile, Got: hostile}}
	f.Silence = &judge.Silence{Add: hostile, Wrong: hostile}
	r.Settings, r.SettingsFile = []string{hostile}, hostile
	r.Notes, r.Subject, r.NotApplied[0].Why, r.Scenarios[0].Name = []string{hostile}, hostile, hostile, hostile
	entries := sampleTrace()
	entries[0].Instance = hostile
	entries[1].Step.Name = hostile
	entries[7].Call.Target.Name = hostile
	entries[8].Fault.Text = hostile
	entries[9].Process = &trace.Process{What: "exited", Output: hostile}
	page := htmlOf(t, r, map[string][]trace.Entry{f.ID: entries})
	if strings.Contains(page, "<img") || strings.Count(page, "</script>") != 1 || strings.ContainsAny(page, "\x1b\x07\u009b\u202e") {
		t.Error("text of the controller got into the page as it was")
	}
}

func TestPageCanBeReadWithoutAScript(t *testing.T) {
	page := samplePage(t)
	buttons := regexp.MustCompile(`<button[^>]*>`).FindAllString(page, -1)
	if len(buttons) == 0 {
		t.Fatal("the page has no buttons")
	}
	for _, button := range buttons {
		// The buttons that fold and unfold are in a hidden paragraph.
		if !strings.Contains(button, "hidden") && !strings.Contains(button, "data-fold") {
			t.Errorf("%s is shown, but does nothing without a script", button)
		}
	}
	if !strings.Contains(page, `<p class="tools" hidden>`) || strings.Count(page, "<details") == 0 {
		t.Error("the buttons that fold are shown without a script, or no part can be folded without a script")
	}
}

func TestEveryElementOfThePageIsClosed(t *testing.T) {
	void := map[string]bool{"meta": true, "link": true, "doctype": true}
	for name, r := range map[string]*Report{"sample": sample(), "empty": {}} {
		page := htmlOf(t, r, map[string][]trace.Entry{"1a2b3c4d5e6f": sampleTrace()})
		page = strings.Replace(page, pageScript, "", 1)
		page = strings.Replace(page, pageStyle, "", 1)
		var open []string
		for _, tag := range regexp.MustCompile(`<(/?)!?([a-z0-9]+)`).FindAllStringSubmatch(page, -1) {
			switch {
			case void[tag[2]]:
			case tag[1] == "":
				open = append(open, tag[2])
			case len(open) == 0 || open[len(open)-1] != tag[2]:
				t.Fatalf("%s: </%s> closes %v", name, tag[2], open)
			default:
				open = open[:len(open)-1]
			}
		}
		if len(open) != 0 {
			t.Errorf("%s: %v are not closed", name, open)
		}
	}
}

func TestLongTimelineKeepsTheRowsAroundTheFault(t *testing.T) {
	var entries []trace.Entry
	for i := range 5000 {
		e := trace.Entry{At: time.Duration(i) * time.Millisecond, Call: &trace.Call{Verb: "update", Target: trace.Target{Resource: "pods"}, Path: "/", Code: 200}}
		if i == 3000 {
			e = trace.Entry{At: e.At, Fault: &trace.Fault{What: "applied"}}
		}
		entries = append(entries, e)
	}
	got := timelineOf(entries)
	applied := -1
	for i, r := range got.Rows {
		if r.Sort == ofFault {
			applied = i
		}
	}
	if len(got.Rows) != mostRows || got.Before+got.After+mostRows != 5000 || applied != mostRows/3 {
		t.Errorf("%d rows, %d before and %d after, the fault is row %d", len(got.Rows), got.Before, got.After, applied)
	}
}

func TestVerdictsOfALaterVersionAreShownAndRankedLast(t *testing.T) {
	r := &Report{Runs: 1, Findings: []judge.Finding{{ID: "1", Verdict: "OF TOMORROW", Sentence: "It is new."}, {ID: "2", Verdict: judge.RBACMissing}}}
	r.Sort()
	if r.Findings[1].Verdict != "OF TOMORROW" || !strings.Contains(htmlOf(t, r, nil), "OF TOMORROW") {
		t.Error("an unknown verdict is not last, or not shown")
	}
}
