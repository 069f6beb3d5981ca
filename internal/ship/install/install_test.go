package install_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/ship/install"
)

// objects parses YAML documents.
func objects(t *testing.T, text string) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	for _, part := range strings.Split(text, "---\n") {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(part), &content); err != nil {
			t.Fatal(err)
		}
		all = append(all, unstructured.Unstructured{Object: content})
	}
	return all
}

const manager = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager}
spec:
  template:
    spec:
      initContainers:
      - {name: setup, image: sea:v1, command: [/setup]}
      containers:
      - name: manager
        image: sea:v1
        command: [/manager]
        args: [--viewer-image=sea:v1, --other=sea:v1-debug, sea:v1, --leader-elect]
        env: [{name: IMAGE, value: sea:v1}, {name: NOTE, value: about sea:v1}]
      - {name: proxy, image: proxy:v2}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: sweep}
spec:
  jobTemplate:
    spec: {template: {spec: {containers: [{name: sweep, image: sea:v1, command: [/sweep, -a]}]}}}
`

const want = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager}
spec:
  template:
    spec:
      initContainers:
      - {name: setup, image: "sea@sha256:1", command: [/setup]}
      containers:
      - name: manager
        image: sea@sha256:1
        command: [/manager]
        args: ["--viewer-image=sea@sha256:1", --other=sea:v1-debug, "sea@sha256:1", --leader-elect]
        env: [{name: IMAGE, value: "sea@sha256:1"}, {name: NOTE, value: about sea:v1}]
      - {name: proxy, image: proxy:v2}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: sweep}
spec:
  jobTemplate:
    spec: {template: {spec: {containers: [{name: sweep, image: "sea@sha256:1", command: [/sweep, -a]}]}}}
`

func TestTheImageIsReplacedWhereverAContainerNamesIt(t *testing.T) {
	got := objects(t, manager)
	if n := install.SetImage(got, "sea:v1", "sea@sha256:1"); n != 3 {
		t.Errorf("replaced in %d containers, want 3", n)
	}
	if diff := cmp.Diff(objects(t, want), got); diff != "" {
		t.Error(diff)
	}
}

func TestTheProgramsOfAnImageAreThoseThatContainersStart(t *testing.T) {
	got := install.Programs(objects(t, manager), "sea:v1")
	slices.Sort(got)
	if want := []string{"/manager", "/setup", "/sweep"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestObjectsAreInTheOrderInWhichTheyCanBeCreated(t *testing.T) {
	all := objects(t, `kind: ValidatingWebhookConfiguration
apiVersion: admissionregistration.k8s.io/v1
---
kind: Deployment
apiVersion: apps/v1
---
kind: Boat
apiVersion: sea.example.com/v1
---
kind: ServiceAccount
apiVersion: v1
---
kind: CustomResourceDefinition
apiVersion: apiextensions.k8s.io/v1
---
kind: Namespace
apiVersion: v1
`)
	install.Sort(all)
	var got []string
	for _, o := range all {
		got = append(got, o.GetKind())
	}
	for _, pair := range [][2]string{
		{"Namespace", "ServiceAccount"}, {"CustomResourceDefinition", "Boat"}, {"ServiceAccount", "Deployment"},
		{"Deployment", "ValidatingWebhookConfiguration"},
	} {
		if slices.Index(got, pair[0]) > slices.Index(got, pair[1]) {
			t.Errorf("%s comes after %s: %v", pair[0], pair[1], got)
		}
	}
}

func TestTheTextHasAllObjects(t *testing.T) {
	text, err := install.YAML("# header\n", objects(t, manager))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# header\napiVersion: apps/v1\n") {
		t.Errorf("%s", text)
	}
	if diff := cmp.Diff(objects(t, manager), objects(t, string(text))); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTheContainersThatStartAProgramAreExtended(t *testing.T) {
	got := objects(t, manager)
	if n := install.Extend(got, "sea:v1", "/manager", []string{"--deep"}, []string{"STORE=http://127.0.0.1:1/?a=b"}); n != 1 {
		t.Errorf("extended %d containers, want 1", n)
	}
	wanted := objects(t, strings.NewReplacer(
		"--leader-elect]", "--leader-elect, --deep]",
		"value: about sea:v1}]", "value: about sea:v1}, {name: STORE, value: 'http://127.0.0.1:1/?a=b'}]",
	).Replace(manager))
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got = objects(t, strings.ReplaceAll(manager, "command: [/manager]", "command: []"))
	if n := install.Extend(got, "sea:v1", "", nil, nil); n != 1 {
		t.Errorf("%d containers start the entrypoint, want 1", n)
	}
}
