package scenario

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func metaNow() metav1.Time { return metav1.Now() }

// TestMain lets the test binary act as the server that a test starts.
func TestMain(m *testing.M) {
	switch os.Getenv("SCENARIO_TEST_SERVER") {
	case "":
		os.Exit(m.Run())
	case "serve":
		http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, os.Args[len(os.Args)-1])
		})
		panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
	case "die":
		os.Stderr.WriteString("no disk\n")
		os.Exit(4)
	case "hang":
		select {}
	}
}

func server(t *testing.T, how string) Endpoint {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Endpoint{Name: how, Run: []string{"env", "SCENARIO_TEST_SERVER=" + how, program, "--port=$(PORT)"}, URL: "http://127.0.0.1:$(PORT)/health"}
}

func TestAnEndpointRunsOnAPortOfItsOwnUntilItIsStopped(t *testing.T) {
	there := httptest.NewServer(http.NotFoundHandler())
	defer there.Close()
	running, err := StartEndpoints(t.Context(), []Endpoint{server(t, "serve"), {Name: "there", URL: there.URL}}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Stop() }()
	urls := running.URLs()
	if urls["there"] != there.URL || !strings.HasSuffix(urls["serve"], "/health") {
		t.Errorf("got %v", urls)
	}
	response, err := http.Get(urls["serve"])
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if port := strings.TrimPrefix(string(body), "--port="); !strings.Contains(urls["serve"], ":"+port+"/") {
		t.Errorf("the server received port %s, but its URL is %s", port, urls["serve"])
	}
	if err := running.Failed(); err != nil {
		t.Errorf("the running endpoint is reported as failed: %v", err)
	}
	if err := running.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := http.Get(urls["serve"]); err == nil {
		t.Error("it answers after it was stopped")
	}
	if _, err := http.Get(urls["there"]); err != nil {
		t.Errorf("a server that was already running was stopped: %v", err)
	}
}

func TestAnEndpointThatDiesIsShownWithItsOutput(t *testing.T) {
	_, err := StartEndpoints(t.Context(), []Endpoint{server(t, "die")}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "endpoint die: env SCENARIO_TEST_SERVER=die ") || !strings.HasSuffix(err.Error(), "ended: exit status 4\n  no disk") {
		t.Errorf("got %v", err)
	}
}

func TestAnEndpointThatDiesLaterIsNoticed(t *testing.T) {
	running, err := StartEndpoints(t.Context(), []Endpoint{server(t, "serve")}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Stop() }()
	if err := syscall.Kill(-running.all[0].cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return running.Failed() != nil })
	if err := running.Failed(); !strings.Contains(err.Error(), "endpoint serve: ") || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("got %v", err)
	}
}

func TestAnEndpointThatDoesNotAnswerIsStoppedWithTheOthers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(t.TempDir(), "pid")
	hang := server(t, "hang")
	hang.Run = []string{"sh", "-c", "echo $$ >" + file + ".new; mv " + file + ".new " + file + "; exec sleep 60"}
	done := make(chan error, 1)
	go func() {
		_, err := StartEndpoints(ctx, []Endpoint{hang}, t.TempDir())
		done <- err
	}()
	until(t, func() bool { _, err := os.Stat(file); return err == nil })
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "does not respond") {
		t.Errorf("got %v", err)
	}
	until(t, func() bool { return ended(t, file) })
}

// ended reports whether the process whose ID is in the file is gone, or is a zombie that
// has not been reaped.
func ended(t *testing.T, file string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}
