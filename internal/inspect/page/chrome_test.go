package page

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// tab is a tab of a headless Chromium, which is driven with the DevTools protocol over pipes.
type tab struct {
	t       *testing.T
	in      *os.File
	session string

	mu       sync.Mutex
	last     int
	answers  map[int]chan message
	problems []string
}

type message struct {
	ID        int                       `json:"id,omitempty"`
	SessionID string                    `json:"sessionId,omitempty"`
	Method    string                    `json:"method,omitempty"`
	Params    any                       `json:"params,omitempty"`
	Result    json.RawMessage           `json:"result,omitempty"`
	Error     *struct{ Message string } `json:"error,omitempty"`
}

// open opens an address in a window of this size. The test fails if the page reports a problem.
func open(t *testing.T, address string, width, height int, dark bool) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium here: apt-get install chromium")
	}
	fromUs, in, err1 := os.Pipe()
	out, toUs, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	profile, err := os.MkdirTemp("", "koboshi-page-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeProfile(t, profile) })
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{fromUs, toUs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = fromUs.Close(), toUs.Close()
	b := &tab{t: t, in: in, answers: map[int]chan message{}}
	ended := make(chan struct{})
	go b.read(out, ended)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // with its renderers
		_ = cmd.Wait()
		<-ended
		for _, problem := range b.problems {
			t.Errorf("the page reports: %s", problem)
		}
	})
	b.prepare(address, width, height, dark)
	return b
}

// removeProfile removes the profile of a browser that has been killed. Its other processes may
// still write to it for a moment.
func removeProfile(t *testing.T, profile string) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(10 * time.Second); os.RemoveAll(profile) != nil; {
		select {
		case <-tick.C:
		case <-late:
			t.Logf("%s stays", profile)
			return
		}
	}
}

func (b *tab) prepare(address string, width, height int, dark bool) {
	b.t.Helper()
	var target struct{ TargetID string }
	b.result(&target, "Target.createTarget", map[string]any{"url": "about:blank"})
	var attached struct{ SessionID string }
	b.result(&attached, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = attached.SessionID
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Runtime.enable", nil)
	b.call("Log.enable", nil)
	b.call("Page.enable", nil)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
	b.call("Page.navigate", map[string]any{"url": address})
}

// read hands answers to their callers, and collects problems.
func (b *tab) read(out *os.File, ended chan struct{}) {
	defer close(ended)
	defer out.Close()
	reader := bufio.NewReaderSize(out, 1<<20)
	for {
		data, err := reader.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if answer := b.answers[m.ID]; m.ID != 0 && answer != nil {
			delete(b.answers, m.ID)
			answer <- m
		}
		// When the test has ended, its server ends before the browser does.
		if problem := problemOf(m); problem != "" && b.t.Context().Err() == nil {
			b.problems = append(b.problems, problem)
		}
		b.mu.Unlock()
	}
}

// problemOf returns an exception, an error on the console, or a blocked request.
func problemOf(m message) string {
	text, _ := json.Marshal(m.Params)
	switch m.Method {
	case "Runtime.exceptionThrown":
		return string(text)
	case "Log.entryAdded", "Runtime.consoleAPICalled":
		var event struct {
			Type  string
			Entry struct{ Level string }
		}
		_ = json.Unmarshal(text, &event)
		if event.Type == "error" || event.Type == "warning" || event.Entry.Level == "error" || event.Entry.Level == "warning" {
			return string(text)
		}
	}
	return ""
}

func (b *tab) call(method string, params any) json.RawMessage {
	b.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	answer := make(chan message, 1)
	b.mu.Lock()
	b.last++
	m := message{ID: b.last, SessionID: b.session, Method: method, Params: params}
	b.answers[m.ID] = answer
	b.mu.Unlock()
	data, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(data, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case got := <-answer:
		if got.Error != nil {
			b.t.Fatalf("%s: %s", method, got.Error.Message)
		}
		return got.Result
	case <-time.After(patience):
		b.t.Fatalf("%s has no answer", method)
	}
	return nil
}

// patience limits the time of each action. The machine may be very busy.
const patience = 2 * time.Minute

func (b *tab) result(into any, method string, params any) {
	b.t.Helper()
	if err := json.Unmarshal(b.call(method, params), into); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression.
func (b *tab) eval(expression string) any {
	b.t.Helper()
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	b.result(&got, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if got.ExceptionDetails != nil {
		b.t.Fatalf("%s: %v", expression, got.ExceptionDetails)
	}
	return got.Result.Value
}

// await waits until an expression is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for b.eval("Boolean("+expression+")") != true {
		if time.Now().After(end) {
			b.t.Fatalf("%s stays false; the page shows %v", expression, b.eval("document.body.innerText"))
		}
		// A headless browser may give no animation frame to a page in which nothing moves.
		b.eval("new Promise((next) => setTimeout(next, 10))")
	}
}

// shows waits for a text in an element.
func (b *tab) shows(selector, text string) {
	b.t.Helper()
	b.await(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))", selector, text))
}

// click clicks the first element that contains a text.
func (b *tab) click(selector, text string) {
	b.t.Helper()
	b.shows(selector, text)
	b.eval(fmt.Sprintf("[...document.querySelectorAll(%q)].find((e) => e.textContent.includes(%q)).click()", selector, text))
}

// press presses a key in the element that has the focus.
func (b *tab) press(key string) {
	b.t.Helper()
	text := ""
	if len(key) == 1 {
		text = key
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key}
		if text != "" && kind == "keyDown" {
			params["text"] = text
		}
		b.call("Input.dispatchKeyEvent", params)
	}
}

// picture writes a picture of the page to the folder that the environment variable names, if it is
// set.
func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("KOBOSHI_SCREENSHOTS")
	if dir == "" {
		return
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".png"), b.screenshot(), 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// screenshot returns a picture of the page as a PNG file.
func (b *tab) screenshot() []byte {
	b.t.Helper()
	var shot struct{ Data string }
	b.result(&shot, "Page.captureScreenshot", map[string]any{"format": "png"})
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}
