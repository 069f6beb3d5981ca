package session

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/broadcast"
	"github.com/koboshi-dev/koboshi/internal/devloop"
	"github.com/koboshi-dev/koboshi/internal/devloop/webhook"
	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// within limits how long the test waits for anything. On a loaded machine, everything is slow.
const within = 2 * time.Minute

var (
	ships  = schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "ships"}
	older  = schema.GroupVersionResource{Group: "sea.example.com", Version: "v1beta1", Resource: "ships"}
	config = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// bench is a session in a project that the test edits.
type bench struct {
	t      *testing.T
	dir    string
	admin  *rest.Config
	client dynamic.Interface
	rounds chan devloop.Report
	log    *trace.Log

	mu      sync.Mutex
	changed broadcast.Signal
	said    bytes.Buffer // what koboshi said
	printed bytes.Buffer // what the manager printed
	reviews []webhook.Review
	lose    bool
	thinks  bool // about losing data, until the question is obsolete
	losses  []string
}

func (b *bench) say(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said.WriteString(text)
	b.changed.Fire()
}

func (b *bench) Note(text string)       { b.say("note: " + text + "\n") }
func (b *bench) Text(text string)       { b.say(text) }
func (b *bench) Ready(Ready)            {}
func (b *bench) Starting()              {}
func (b *bench) Round(r devloop.Report) { b.say("note: " + r.String() + "\n"); b.rounds <- r }

// Write receives the output of the manager.
func (b *bench) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.changed.Fire()
	return b.printed.Write(data)
}

// agrees answers the question whether data may be lost.
func (b *bench) agrees(ctx context.Context, losses []string) (bool, error) {
	b.losses = losses
	if b.thinks {
		b.say("thinking\n")
		<-ctx.Done()
	}
	return b.lose, nil
}

func (b *bench) review(r webhook.Review) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reviews = append(b.reviews, r)
}

// forget drops the messages and the output so far.
func (b *bench) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said.Reset()
	b.printed.Reset()
}

// hears waits until koboshi has shown the text.
func (b *bench) hears(text string) {
	b.t.Helper()
	late := time.After(within)
	for {
		changed := b.changed.Next()
		b.mu.Lock()
		said := b.said.String()
		b.mu.Unlock()
		if strings.Contains(said, text) {
			return
		}
		select {
		case <-changed:
		case <-late:
			b.t.Fatalf("koboshi did not say %q, but:\n%s", text, said)
		}
	}
}

// replace edits a file.
func (b *bench) replace(name, old, with string) {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(old)) {
		b.t.Fatalf("%q is not in %s", old, name)
	}
	b.write(name, strings.Replace(string(data), old, with, 1))
}

// write replaces a file in one step, as most editors do.
func (b *bench) write(name, text string) {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	temporary := filepath.Join(filepath.Dir(file), ".saving")
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(temporary, []byte(text), 0o600)
	}
	if err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// round waits for the next round, and checks which stages it had.
func (b *bench) round(stages string) devloop.Report {
	b.t.Helper()
	select {
	case r := <-b.rounds:
		var ran []string
		for _, s := range r.Stages {
			ran = append(ran, s.Stage)
		}
		if got := strings.Join(ran, " "); got != stages {
			b.t.Errorf("the round ran %q, want %q: %s, %v", got, stages, r, r.Err)
		}
		return r
	case <-time.After(within):
		b.mu.Lock()
		defer b.mu.Unlock()
		b.t.Fatalf("no round; koboshi said:\n%s\nand the manager:\n%s", b.said.String(), b.printed.String())
		return devloop.Report{}
	}
}

// becomes waits until a ship has the greeting.
func (b *bench) becomes(name, greeting string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), within)
	defer cancel()
	client := b.client.Resource(ships).Namespace("default")
	last := ""
	for ctx.Err() == nil { // a change of the CRD ends a watch
		events, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			b.t.Fatal(err)
		}
		for event := range events.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				if last = object.GetAnnotations()["greeting"]; last == greeting {
					events.Stop()
					return
				}
			}
		}
	}
	b.t.Fatalf("%s is greeted with %q, want %q", name, last, greeting)
}

// writeProject writes the project in testdata, and more files.
func (b *bench) writeProject(more string, change func(string) string) {
	b.t.Helper()
	archive, err := txtar.ParseFile("testdata/ship.txtar")
	if err != nil {
		b.t.Fatal(err)
	}
	for _, file := range append(archive.Files, txtar.Parse([]byte(more)).Files...) {
		b.write(file.Name, change(string(file.Data)))
	}
}

// start starts a session in a copy of the project in testdata.
func start(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), rounds: make(chan devloop.Report, 100), log: trace.NewLog(time.Now())}
	b.writeProject("", func(text string) string { return text })
	t.Setenv("GREETING", "") // is unset when the test ends
	if err := os.Unsetenv("GREETING"); err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), Options{
		Project: project.Options{Dir: b.dir}, Dir: t.TempDir(), Output: b, Observer: b,
		Env:       func() ([]string, error) { return b.env() },
		Lose:      b.agrees,
		Recording: Recording{Log: b.log, Review: b.review},
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, b.said.String())
	}
	b.admin = rest.CopyConfig(s.admin)
	b.admin.QPS = -1
	if b.client, err = dynamic.NewForConfig(b.admin); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, s.Stop()); err != nil {
			t.Error(err)
		}
		if s.Running() {
			t.Error("the manager is still running")
		}
	})
	return b
}

// env returns the variables in .env.
func (b *bench) env() ([]string, error) {
	data, err := os.ReadFile(filepath.Join(b.dir, ".env"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(data)), err
}

// A process can hold only one plane, so everything that needs one is in this test.
func TestOnARealPlane(t *testing.T) {
	b := start(t)
	b.round("apply restart samples")
	for _, c := range []struct {
		claim string
		test  func(*bench)
	}{
		{"the manager reconciles the sample", func(b *bench) { b.becomes("ship-sample", "ahoy") }},
		{"an edited body reconciles without any other stage", editedBody},
		{"code that does not compile is shown, and changes nothing", compileError},
		{"a panic is shown before its stack, and the next edit repairs it", crash},
		{"a review that a handler drops fails with the reason", droppedReview},
		{"a sample is applied, and deleted with its file", editedSample},
		{"a manifest is applied, and deleted with its file", editedManifest},
		{"the writes of all clients are recorded, without values of Secrets", writesOfAll},
		{"the manager has the permissions of its service account", permissions},
		{"a change of .env restarts the manager with it", editedEnvironment},
		{"a change of a CRD that loses data is applied only with consent", losingCRD},
		{"a new kind is served at once, and removed with its file", newKind},
		{"an edited conversion converts stored objects at once", editedConversion},
		{"no apply is refused during restarts, and none waits longer than a restart", appliesDuringRestarts},
		{"everything is recorded", recorded},
		{"a workload is paused by one session, and restored", pausedAndRestored},
		{"in a cluster that exists, only CRDs are applied, and the manager is restored", existingCluster},
	} {
		if !t.Run(c.claim, func(t *testing.T) { b.t = t; b.forget(); c.test(b) }) {
			b.mu.Lock()
			t.Logf("koboshi said:\n%s\nthe manager printed:\n%s", b.said.String(), b.printed.String())
			b.mu.Unlock()
			break // the next claims start from the state after this one
		}
	}
	b.t = t
}

func editedBody(b *bench) {
	b.replace("cmd/main.go", `return "ahoy"`, `return "avast"`)
	b.round("build restart")
	b.becomes("ship-sample", "avast")
}

func compileError(b *bench) {
	b.replace("cmd/main.go", `return "avast"`, `return avast`)
	if r := b.round("build"); r.Err == nil || r.Left.Empty() {
		b.t.Errorf("got %+v", r)
	}
	b.hears("cmd/main.go:")
	b.hears("undefined: avast")
	b.create("while-broken", 1)
	b.becomes("while-broken", "avast") // the old process goes on
	b.replace("cmd/main.go", `return avast`, `return "land"`)
	b.round("build restart")
	b.becomes("while-broken", "land")
}

func crash(b *bench) {
	b.replace("cmd/main.go", `return "land" + os.Getenv("GREETING")`, `panic("no " + s.Metadata.Name)`)
	b.round("build restart")
	b.hears("the manager starts again at the next edit")
	b.mu.Lock()
	said := b.said.String()
	b.mu.Unlock()
	cause, stack := strings.Index(said, "in main.greeting (main.go:"), strings.Index(said, "goroutine ")
	if cause < 0 || stack < cause {
		b.t.Errorf("the cause is at %d, and the stack at %d:\n%s", cause, stack, said)
	}
	if err := b.try("refused", 1); err == nil || !strings.Contains(err.Error(), "panic: no ") {
		b.t.Errorf("the API server does not say why it cannot call the webhook: %v", err)
	}
	b.replace("cmd/main.go", `panic("no " + s.Metadata.Name)`, `return "ahoy" + os.Getenv("GREETING")`)
	b.round("build restart")
	b.becomes("ship-sample", "ahoy")
}

func droppedReview(b *bench) {
	b.replace("cmd/main.go", "masts := review.Request.Object.Spec.Masts\n", "masts := review.Request.Object.Spec.Masts\n\tif masts == 7 {\n\t\tpanic(masts)\n\t}\n")
	b.round("build restart")
	if err := b.try("dropped", 7); err == nil || !strings.Contains(err.Error(), "closed the connection without an answer") {
		b.t.Errorf("got %v", err)
	}
	if err := b.try("too-many", 10); err == nil || !strings.Contains(err.Error(), "too many masts") {
		b.t.Errorf("got %v", err)
	}
	b.create("accepted", 2)
}

const other = "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: other}\nspec: {masts: 1, port: %s}\n"

func editedSample(b *bench) {
	b.write("config/samples/other.yaml", fmt.Sprintf(other, "sakai"))
	b.round("samples")
	b.becomes("other", "ahoy")
	b.write("config/samples/other.yaml", fmt.Sprintf(strings.Replace(other, "masts: 1", "masts: 11", 1), "sakai"))
	if r := b.round("samples"); r.Err == nil || !strings.Contains(r.Err.Error(), "too many masts") {
		b.t.Errorf("got %v", r.Err)
	}
	b.write("config/samples/other.yaml", fmt.Sprintf(other, "nagasaki"))
	b.round("samples")
	if got := b.get(ships, "other"); port(got) != "nagasaki" {
		b.t.Errorf("the port is %q", port(got))
	}
	b.remove("config/samples/other.yaml")
	b.round("samples")
	b.gone(ships, "other")
}

func editedManifest(b *bench) {
	const name = "config/rbac/chart.yaml"
	b.write(name, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart, namespace: default}\ndata: {a: '1', b: '2'}\n")
	b.round("apply")
	b.write(name, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart, namespace: default}\ndata: {a: '1'}\n")
	b.round("apply")
	if data, _, _ := unstructured.NestedStringMap(b.get(config, "chart").Object, "data"); len(data) != 1 {
		b.t.Errorf("got %v", data)
	}
	b.remove(name)
	b.round("apply")
	b.gone(config, "chart")
	b.hears("deleted ConfigMap default/chart")
	b.commits("ConfigMap", "chart", "created updated deleted") // the manager does not watch them
}

// commits waits until the writes to an object have been recorded.
func (b *bench) commits(kind, name, want string) {
	b.t.Helper()
	for late := time.After(within); ; {
		recorded := b.log.Recorded()
		var ops []string
		for _, e := range b.log.Entries() {
			if c := e.Commit; c != nil && c.Kind == kind && c.Name == name {
				ops = append(ops, c.Op)
			}
		}
		if strings.Join(ops, " ") == want {
			return
		}
		select {
		case <-recorded:
		case <-late:
			b.t.Fatalf("the writes to %s %s are recorded as %q, want %q", kind, name, ops, want)
		}
	}
}

func writesOfAll(b *bench) {
	const secret = "open-sesame-4711"
	resource := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	client := b.client.Resource(resource).Namespace("default")
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "key"}, "stringData": map[string]any{"word": secret},
	}}
	if _, err := client.Create(b.t.Context(), object, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	label := []byte(`{"metadata":{"labels":{"greeted":"yes"}}}`)
	patch := func(resource schema.GroupVersionResource, name string) {
		if _, err := b.client.Resource(resource).Namespace("default").Patch(b.t.Context(), name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
			b.t.Fatal(err)
		}
	}
	patch(resource, "key")
	b.commits("Secret", "key", "created updated")
	// The ConfigMap existed before the manager started.
	patch(config, "harbor")
	b.commits("ConfigMap", "harbor", "existed updated")
	data, err := json.Marshal(b.log.Entries())
	if err != nil {
		b.t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(secret))) {
		b.t.Error("the recording contains the value of a Secret")
	}
}

func permissions(b *bench) {
	b.replace("config/rbac/rbac.yaml", "verbs: [get, list, watch, patch]", "verbs: [get, list, watch]")
	b.round("apply")
	b.refuses("patch")
	b.write("config/samples/other.yaml", fmt.Sprintf(other, "sakai"))
	b.round("samples")
	b.prints("greeted other with ahoy 403")
	b.replace("config/rbac/rbac.yaml", "verbs: [get, list, watch]", "verbs: [get, list, watch, patch]")
	b.round("apply")
	b.remove("config/samples/other.yaml")
	b.round("samples")
}

func editedEnvironment(b *bench) {
	b.write(".env", "GREETING=-there")
	b.round("apply restart")
	b.becomes("ship-sample", "ahoy-there")
}

func losingCRD(b *bench) {
	const crd = "config/crd/bases/ships.yaml"
	before, err := os.ReadFile(filepath.Join(b.dir, crd))
	if err != nil {
		b.t.Fatal(err)
	}
	without := strings.ReplaceAll(string(before), "              port: {type: string}\n", "")
	b.write(crd, without)
	if r := b.round("apply"); !errors.Is(r.Err, errKept) {
		b.t.Errorf("got %v", r.Err)
	}
	if got := b.get(ships, "ship-sample"); port(got) != "hakata" {
		b.t.Errorf("the data is lost: %v", got.Object)
	}
	if text := strings.Join(b.losses, "\n"); !strings.Contains(text, "ships.sea.example.com: spec.port") || !strings.Contains(text, "default/ship-sample") {
		b.t.Errorf("got the losses %q", b.losses)
	}
	b.thinks = true
	b.write(crd, without+"# again\n")
	b.hears("thinking")
	b.thinks = false
	b.write(crd, string(before))
	if r := b.round("apply"); !r.Stale {
		b.t.Errorf("an edit does not end the question: %+v", r)
	}
	b.round("apply")
	b.lose = true
	b.write(crd, without)
	b.round("apply")
	b.hears("-              port:")
	b.lose, b.losses = false, nil
	b.write(crd, string(before))
	b.round("apply")
	if len(b.losses) > 0 {
		b.t.Errorf("adding a field loses %q", b.losses)
	}
}

func newKind(b *bench) {
	const crd, sample = "config/crd/bases/boats.yaml", "config/samples/boat.yaml"
	boats := schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "boats"}
	b.write(crd, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: boats.sea.example.com},
  spec: {group: sea.example.com, scope: Namespaced, names: {kind: Boat, listKind: BoatList, plural: boats, singular: boat},
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}
`)
	b.round("apply")
	b.write(sample, "{apiVersion: sea.example.com/v1, kind: Boat, metadata: {name: first}}\n")
	b.round("samples")
	b.get(boats, "first")
	b.remove(crd) // its objects would be lost
	if r := b.round("apply"); !errors.Is(r.Err, errKept) || len(b.losses) != 1 || !strings.Contains(b.losses[0], "default/first") {
		b.t.Errorf("got %v, %q", r.Err, b.losses)
	}
	b.get(boats, "first")
	b.remove(sample)
	if r := b.round("apply"); !errors.Is(r.Err, errKept) {
		b.t.Errorf("got %v", r.Err)
	}
	b.lose = true
	b.replace("config/rbac/rbac.yaml", "rules:\n", "rules: # again\n")
	b.round("apply samples")
	b.lose = false
	b.hears("deleted CustomResourceDefinition boats.sea.example.com")
}

func editedConversion(b *bench) {
	if got := flagOf(b.get(older, "ship-sample")); got != "red" {
		b.t.Errorf("the flag is %q", got)
	}
	b.replace("cmd/main.go", `return "red"`, `return "blue"`)
	b.round("build restart")
	if got := flagOf(b.get(older, "ship-sample")); got != "blue" {
		b.t.Errorf("the flag is %q", got)
	}
}

func appliesDuringRestarts(b *bench) {
	const applies, restarts, workers = 200, 20, 4
	b.mu.Lock()
	b.reviews = nil
	b.mu.Unlock()
	// Each worker keeps applying until the last restart has ended and there have been enough
	// applies.
	var applied atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				n := applied.Add(1) - 1
				if over.Load() && n >= applies {
					return
				}
				name := fmt.Sprintf("load-%d", n%10)
				_, err := b.client.Resource(ships).Namespace("default").Apply(b.t.Context(), name, shipOf(name, int(n%5)), metav1.ApplyOptions{FieldManager: "test", Force: true})
				if err != nil {
					b.t.Errorf("apply %d: %v", n, err)
				}
			}
		})
	}
	longest := time.Duration(0)
	func() {
		defer all.Wait()
		defer over.Store(true)
		for n := range restarts {
			b.write(".env", fmt.Sprintf("GREETING=-%d", n))
			for _, s := range b.round("apply restart").Stages {
				if s.Stage == "restart" {
					longest = max(longest, s.Took)
				}
			}
		}
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	held := 0
	for _, r := range b.reviews {
		if body, err := r.Request.Plain(); err != nil || bytes.Contains(body, []byte("serviceaccount:system:manager")) {
			continue // a write of a manager, which no longer waits when it is ended
		}
		// On a busy machine, a review that is free to continue does not always continue at once.
		if r.Err != "" || r.Status != 200 || r.Held > 2*longest+time.Second {
			b.t.Errorf("a review waited %s although no restart took longer than %s: %d %s", r.Held, longest, r.Status, r.Err)
		}
		if r.Held > time.Millisecond {
			held++
		}
	}
	b.t.Logf("%d applies, %d reviews, %d of them held; the longest restart took %s", applied.Load(), len(b.reviews), held, longest)
	if held == 0 {
		b.t.Error("no apply fell into a restart")
	}
}

func recorded(b *bench) {
	var instances, patches []string
	for _, e := range b.log.Entries() {
		if e.Process != nil && e.Process.What == "started" {
			instances = append(instances, e.Instance)
		}
		if e.Call != nil && e.Call.Verb == "patch" {
			patches = append(patches, e.Instance)
		}
	}
	slices.Sort(instances)
	if n := len(slices.Compact(instances)); n < 20 || len(patches) == 0 {
		b.t.Errorf("recorded %d processes and %d patches", n, len(patches))
	}
}

func shipOf(name string, masts int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Ship",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"masts": int64(masts)},
	}}
}

func (b *bench) try(name string, masts int) error {
	_, err := b.client.Resource(ships).Namespace("default").Create(b.t.Context(), shipOf(name, masts), metav1.CreateOptions{})
	return err
}

func (b *bench) create(name string, masts int) {
	b.t.Helper()
	if err := b.try(name, masts); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	b.t.Helper()
	got, err := b.client.Resource(resource).Namespace("default").Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

func (b *bench) gone(resource schema.GroupVersionResource, name string) {
	b.t.Helper()
	if _, err := b.client.Resource(resource).Namespace("default").Get(b.t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		b.t.Errorf("%s: %v", name, err)
	}
}

func (b *bench) remove(name string) {
	b.t.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

// refuses waits until the API server refuses a verb to the manager, because the server notices a
// changed role a moment later.
func (b *bench) refuses(verb string) {
	b.t.Helper()
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	for late := time.After(within); ; {
		review, err := b.client.Resource(reviews).Create(b.t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{
				"user":               "system:serviceaccount:system:manager",
				"resourceAttributes": map[string]any{"group": ships.Group, "resource": ships.Resource, "namespace": "default", "verb": verb},
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			b.t.Fatal(err)
		}
		if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); !allowed {
			return
		}
		select {
		case <-late:
			b.t.Fatalf("the manager may still %s", verb)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// prints waits until the manager has printed the text.
func (b *bench) prints(text string) {
	b.t.Helper()
	late := time.After(within)
	for {
		changed := b.changed.Next()
		b.mu.Lock()
		printed := b.printed.String()
		b.mu.Unlock()
		if strings.Contains(printed, text) {
			return
		}
		select {
		case <-changed:
		case <-late:
			b.t.Fatalf("the manager did not print %q, but:\n%s", text, printed)
		}
	}
}

func port(ship *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(ship.Object, "spec", "port")
	return text
}

func flagOf(ship *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(ship.Object, "spec", "flag")
	return text
}
