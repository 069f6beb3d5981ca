package record

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// role makes the test's own program the command: create writes a Secret and prints its value,
// and wait waits for a signal.
const role = "KOBOSHI_RECORD_TEST"

const password = "open-sesame-1234"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "create":
		os.Exit(create())
	case "wait":
		_, _ = fmt.Fprintln(os.Stdout, "waiting")
		select {}
	}
	os.Exit(m.Run())
}

func create() int {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		return 1
	}
	config.ContentType = "application/json"
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		_, err = client.CoreV1().Secrets("a").Create(context.Background(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"password": password},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		return 1
	}
	_, _ = fmt.Fprintln(os.Stdout, "the password is "+password)
	return 3
}

// server stands for an API server that accepts every object.
func server(t *testing.T) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(bytes.Replace(body, []byte(`"metadata":{`), []byte(`"metadata":{"resourceVersion":"7","uid":"u",`), 1))
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

func command(t *testing.T, as string) ([]string, []string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{program}, append(os.Environ(), role+"="+as)
}

func TestACommandIsRecordedWithItsOutputAndWithoutSecrets(t *testing.T) {
	trace.NoticeSecrets(func(value string) { scrub.Known.Add(value) })
	log := trace.NewLog(time.Now())
	log.Scrub = scrub.Known.Text
	argv, env := command(t, "create")
	var out bytes.Buffer
	code, err := Run(t.Context(), Options{Upstream: server(t), Command: argv, Env: env, Log: log, Output: &out})
	if err != nil || code != 3 || !strings.Contains(out.String(), "the password is "+password) {
		t.Fatalf("%d, %v, %s", code, err, out.String())
	}
	s := inspect.New(trace.Header{}, log.Scrub)
	s.Add(log.Entries()...)
	w := s.Writes(inspect.Ref{})
	if len(w) != 1 || w[0].Object != (inspect.Ref{Kind: "Secret", Namespace: "a", Name: "s"}) || w[0].After != 7 {
		t.Errorf("the writes are %v", w)
	}
	o := s.Overview()
	if len(o.Instances) != 1 || o.Instances[0].ExitCode != 3 {
		t.Errorf("the instances are %v", o.Instances)
	}
	var written bytes.Buffer
	if _, err := log.WriteTo(&written); err != nil || strings.Contains(written.String(), password) || !strings.Contains(written.String(), "the password is [secret value]") {
		t.Errorf("%v, %s", err, written.String())
	}
}

func TestTheCommandEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	log := trace.NewLog(time.Now())
	argv, env := command(t, "wait")
	done := make(chan int)
	go func() {
		code, _ := Run(ctx, Options{Upstream: server(t), Command: argv, Env: env, Log: log})
		done <- code
	}()
	for waiting := true; waiting; {
		recorded := log.Recorded()
		for _, e := range log.Entries() {
			waiting = waiting && (e.Line == nil || e.Line.Text != "waiting")
		}
		if waiting {
			<-recorded
		}
	}
	cancel()
	if code := <-done; code != 128+15 {
		t.Errorf("the exit code is %d", code)
	}
}
