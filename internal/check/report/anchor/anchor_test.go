package anchor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files are a small project. A comment "// here: NAME" marks the line that a test expects.
var files = map[string]string{
	"api/v1/groupversion_info.go": `// +groupName=example.com
package v1
`,
	"api/v1/database_types.go": `package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

type Storage struct {
	Size string ` + "`json:\"size\"`" + ` // here: size
}

type Common struct {
	Paused bool ` + "`json:\"paused,omitempty\"`" + ` // here: paused
	Other       ` + "`json:\",inline\"`" + `
}

type Other struct{ Common }

type DatabaseSpec struct {
	Common   ` + "`json:\",inline\"`" + `
	Storage  *Storage           ` + "`json:\"storage,omitempty\"`" + `
	Replicas map[string]Storage ` + "`json:\"replicas\"`" + ` // here: replicas
}

type DatabaseStatus struct {
	Phase      string             ` + "`json:\"phase\"`" + ` // here: phase
	Conditions []metav1.Condition ` + "`json:\"conditions\"`" + ` // here: conditions
}

type Database struct { // here: Database
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `

	Spec   DatabaseSpec   ` + "`json:\"spec\"`" + `
	Status DatabaseStatus ` + "`json:\"status\"`" + `
}

// Deployment is not an object.
type Deployment struct {
	Spec DatabaseSpec ` + "`json:\"spec\"`" + `
}
`,
	"api/v1/zz_generated.deepcopy.go": "package v1\ntype Database struct{ metav1.TypeMeta }\n",
	"api/v1/double_types.go":          "package v1\ntype Double struct {\n\tmetav1.TypeMeta\n\tSpec DatabaseSpec `json:\"spec\"`\n}\n",
	"api/v2/double_types.go":          "package v2 // example.com\ntype Double struct {\n\tmetav1.TypeMeta\n}\n",
	"api/v1/stored_types.go":          "package v1\n\n// +kubebuilder:storageversion\ntype Stored struct { // here: Stored\n\tmetav1.TypeMeta\n}\n",
	"api/v2/stored_types.go":          "package v2\ntype Stored struct {\n\tmetav1.TypeMeta\n}\n",
	"controller/database_controller.go": `package controller

// +kubebuilder:rbac:groups=example.com,resources=databases;databases/status,verbs=get;list;watch // here: databases
// +kubebuilder:rbac:groups="",resources=pods,verbs=get
// +kubebuilder:rbac:groups="",resources=pods,verbs=delete,namespace=system // here: delete pods

func (r *Reconciler) Reconcile() error {
	var p *int
	func() {
		_ = *p // here: panic
	}()
	return nil
}
`,
	"vendor/x/database_controller.go": "package controller\n\n\n\n\nfunc (r *Reconciler) Reconcile() {\n\n\n\n\n}\n",
	"config/samples/database.yaml": `apiVersion: v1
kind: Secret
metadata:
  name: demo
---
# a comment
apiVersion: example.com/v1 # here: object
kind: Database
metadata:
  name: demo
  namespace: default
spec:
  storage:
    size: 1Gi # here: sample size
  users:
  - name: alice
    role: admin # here: role of alice
  data:
    tls.crt: x # here: crt
`,
	"check/scenario.yaml": `apiVersion: koboshi.dev/v1
kind: Scenario
steps:
- name: create
  apply:
  - file: ../config/samples/database.yaml
  - apiVersion: example.com/v1
    kind: Database
    metadata: {name: inside}
    spec:
      size: 3 # here: inside
`,
	"check/broken.yaml":  "a: [\n",
	"check/endless.yaml": "a: &a [*a, *a]\n",
}

// project writes the files, and returns a function that tells where a mark is.
func project(t *testing.T) (*Project, func(Line) string) {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		// controller-tools reads a marker up to the end of its line.
		var plain []string
		for line := range strings.SplitSeq(content, "\n") {
			if strings.Contains(line, "+kubebuilder") {
				line, _, _ = strings.Cut(line, " // here")
			}
			plain = append(plain, line)
		}
		if err := os.WriteFile(path, []byte(strings.Join(plain, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Open(root), func(at Line) string {
		if at.Number == 0 {
			return ""
		}
		name, err := filepath.Rel(root, at.File)
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Split(files[filepath.ToSlash(name)], "\n")[at.Number-1]
		_, mark, found := strings.Cut(line, "here: ")
		if !found {
			return filepath.ToSlash(name) + " without a mark: " + line
		}
		return mark
	}
}

func TestAnAnchorIsTheLineOrNothing(t *testing.T) {
	p, mark := project(t)
	const database = "Database.example.com default/demo"
	panicsAt := func(line string) string {
		return "controller.(*Reconciler).Reconcile.func1 (database_controller.go:" + line + ")"
	}
	tests := map[string]struct {
		got  Line
		want string
	}{
		"a panic":                            {p.Function(panicsAt("10")), "panic"},
		"a line outside of the function":     {p.Function(panicsAt("3")), ""},
		"a function of another package":      {p.Function("other.(*Reconciler).Reconcile (database_controller.go:10)"), ""},
		"another function":                   {p.Function("controller.(*Reconciler).Other (database_controller.go:10)"), ""},
		"no frame":                           {p.Function("a ../../b (x)"), ""},
		"a field of a sample":                {p.Manifest("config/samples/database.yaml", database, "spec.storage.size"), "sample size"},
		"an element of a list":               {p.Manifest("config/samples/database.yaml", database, "spec.users[alice].role"), "role of alice"},
		"the key of a map":                   {p.Manifest("config/samples/database.yaml", database, "spec.data[tls.crt]"), "crt"},
		"a field that the sample lacks":      {p.Manifest("config/samples/database.yaml", database, "status.phase"), ""},
		"an object":                          {p.Manifest("config/samples/database.yaml", database, ""), "object"},
		"an object of another namespace":     {p.Manifest("config/samples/database.yaml", "Database.example.com other/demo", ""), ""},
		"an object of another group":         {p.Manifest("config/samples/database.yaml", "Database.example.org default/demo", ""), ""},
		"an object in a scenario":            {p.Manifest("check/scenario.yaml", "Database.example.com default/inside", "spec.size"), "inside"},
		"an object that a scenario names":    {p.Manifest("check/scenario.yaml", database, "spec.storage.size"), "sample size"},
		"a file that is not YAML":            {p.Manifest("check/broken.yaml", database, ""), ""},
		"a file that refers to itself":       {p.Manifest("check/endless.yaml", database, ""), ""},
		"a file that does not exist":         {p.Manifest("check/none.yaml", database, ""), ""},
		"a field in Go":                      {p.Field(database, "status.phase"), "phase"},
		"a field below a pointer":            {p.Field(database, "spec.storage.size"), "size"},
		"a field of an embedded struct":      {p.Field(database, "spec.paused"), "paused"},
		"a field in a map":                   {p.Field(database, "spec.replicas[east].size"), "size"},
		"a field of a type elsewhere":        {p.Field(database, "status.conditions[Ready].message"), "conditions"},
		"a field that Go does not know":      {p.Field(database, "spec.unknown"), ""},
		"the whole status":                   {p.Field(database, "status"), "api/v1/database_types.go without a mark: \tStatus DatabaseStatus `json:\"status\"`"},
		"metadata":                           {p.Field(database, "metadata.finalizers"), ""},
		"a struct that is no object":         {p.Field("Deployment.apps default/a", "spec.paused"), ""},
		"a kind of another group":            {p.Field("Database.example.org default/a", "status.phase"), ""},
		"a kind in two versions":             {p.Field("Double.example.com default/a", "spec.paused"), ""},
		"a kind":                             {p.Kind(database), "Database"},
		"a kind in two versions, as a whole": {p.Kind("Double.example.com"), ""},
		"the version that is stored":         {p.Kind("Stored.example.com"), "Stored"},
		"a marker":                           {p.Marker("get", "example.com", "databases"), "databases"},
		"a verb that the marker lacks":       {p.Marker("delete", "example.com", "databases"), "databases"},
		"a subresource without a marker":     {p.Marker("update", "example.com", "databases/finalizers"), "databases"},
		"a marker of a namespace":            {p.Marker("delete", "", "pods"), "delete pods"},
		"a resource without a marker":        {p.Marker("get", "apps", "deployments"), ""},
		"a path":                             {p.Marker("get", "", ""), ""},
	}
	for name, test := range tests {
		if got := mark(test.got); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestThePathOfAFieldIsSplitAtDotsOutsideOfBrackets(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "spec": "spec", "status.conditions[Ready].message": "status|conditions|Ready|message", "data[tls.crt]": "data|tls.crt",
		"a[b][c]": "a|b|c", "a[b": "", "..": "",
	} {
		if got := strings.Join(parts(path), "|"); got != want {
			t.Errorf("%q is split into %q, want %q", path, got, want)
		}
	}
}

func FuzzAnchors(f *testing.F) {
	f.Add("controller.(*R).Reconcile (x.go:1)", "Database.example.com default/demo", "spec.users[alice].role")
	f.Fuzz(func(t *testing.T, frame, name, path string) {
		p, _ := project(t)
		for _, at := range []Line{p.Function(frame), p.Manifest("config/samples/database.yaml", name, path), p.Field(name, path), p.Kind(name), p.Marker(frame, name, path)} {
			if at.Number < 0 || (at.Number > 0) != (at.File != "") || at.File != "" && !strings.HasPrefix(at.File, p.root) {
				t.Errorf("%+v is no line of the project", at)
			}
		}
	})
}
