package merge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const before = `package main

import (
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	// +kubebuilder:scaffold:imports
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))

	// +kubebuilder:scaffold:scheme
}

func main() {
	mgr, err := ctrl.NewManager(config(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}

	// +kubebuilder:scaffold:builder

	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
`

const after = `package main

import (
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	shipv1 "example.com/ship/api/v1"
	"example.com/ship/internal/controller"
	// +kubebuilder:scaffold:imports
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))

	utilruntime.Must(shipv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	mgr, err := ctrl.NewManager(config(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}

	// The controller of ships.
	if err := (&controller.ShipReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		os.Exit(1)
	}
	// +kubebuilder:scaffold:builder

	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}
`

// mine is a main.go that a person has rewritten: other names, other order, no markers.
const mine = `// Command manager steers ships.
package main

import (
	"flag"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	portv1 "example.com/ship/port/v1"
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(portv1.AddToScheme(scheme)) // ports
	return scheme
}

func run() error {
	flag.Parse()
	mgr, err := ctrl.NewManager(config(), ctrl.Options{Scheme: newScheme()})
	if err != nil {
		return err
	}
	if err := port.SetupWithManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
`

func apply(t *testing.T, name, base, ours, theirs string) (string, []Conflict) {
	t.Helper()
	merged, conflicts := File(name, []byte(base), []byte(ours), []byte(theirs))
	return string(merged), conflicts
}

func TestCodeIsAddedWhereTheScaffoldHasIt(t *testing.T) {
	edited := strings.Replace(before, "os.Exit(1)\n\t}\n\n\t//", "panic(err)\n\t}\n\t//", 1)
	edited = strings.Replace(edited, `"os"`, "\"fmt\"\n\t\"os\"", 1)
	want := strings.Replace(after, "os.Exit(1)\n\t}\n\n\t// The", "panic(err)\n\t}\n\n\t// The", 1)
	want = strings.Replace(want, `"os"`, "\"fmt\"\n\t\"os\"", 1)
	merged, conflicts := apply(t, "main.go", before, edited, after)
	if diff := cmp.Diff(want, merged); diff != "" || len(conflicts) > 0 {
		t.Errorf("%v\n%s", conflicts, diff)
	}
}

func TestAFileWithoutMarkersAndWithOtherNamesGetsTheCode(t *testing.T) {
	merged, conflicts := apply(t, "main.go", before, mine, after)
	for _, want := range []string{
		"portv1.AddToScheme(scheme)) // ports\n\n\tutilruntime.Must(shipv1.AddToScheme(scheme))\n",
		"\t// The controller of ships.\n\tif err := (&controller.ShipReconciler{",
		"\tportv1 \"example.com/ship/port/v1\"\n",
		"\tshipv1 \"example.com/ship/api/v1\"\n",
	} {
		if !strings.Contains(merged, want) {
			t.Errorf("the result lacks %q", want)
		}
	}
	if strings.Index(merged, "ShipReconciler") < strings.Index(merged, "port.SetupWithManager") || len(conflicts) > 0 {
		t.Errorf("%v\n%s", conflicts, merged)
	}
}

func TestCodeIsAddedOnlyOnce(t *testing.T) {
	once, _ := apply(t, "main.go", before, mine, after)
	if again, conflicts := apply(t, "main.go", before, once, after); again != once || len(conflicts) > 0 {
		t.Errorf("%v\n%s", conflicts, cmp.Diff(once, again))
	}
}

func TestWhatWasAddedCanBeRemoved(t *testing.T) {
	added, _ := apply(t, "main.go", before, mine, after)
	removed, conflicts := apply(t, "main.go", after, added, before)
	if strings.Contains(removed, "ship/api") || strings.Contains(removed, "ShipReconciler") || len(conflicts) > 0 {
		t.Errorf("%v\n%s", conflicts, removed)
	}
	if !strings.Contains(removed, "port.SetupWithManager(mgr)") {
		t.Errorf("the code of the person is gone:\n%s", removed)
	}
}

func TestEditedCodeIsNotRemoved(t *testing.T) {
	edited := strings.Replace(after, "{Client: mgr.GetClient()}", "{Client: mgr.GetClient(), Depth: 3}", 1)
	merged, conflicts := apply(t, "main.go", after, edited, before)
	if !strings.Contains(merged, "Depth: 3") || !strings.Contains(merged, `"example.com/ship/internal/controller"`) {
		t.Errorf("the edited code is gone:\n%s", merged)
	}
	if strings.Contains(merged, "shipv1") {
		t.Errorf("the unedited code is still there:\n%s", merged)
	}
	if len(conflicts) != 1 || conflicts[0].Line != 28 && conflicts[0].Line != 29 || !strings.Contains(conflicts[0].Reason, "by hand") {
		t.Errorf("conflicts %+v", conflicts)
	}
}

func TestCodeWithoutAPlaceIsAConflict(t *testing.T) {
	merged, conflicts := apply(t, "main.go", before, "package main\n\nfunc main() { start() }\n", after)
	if len(conflicts) != 2 || !strings.Contains(conflicts[1].Text, "ShipReconciler") || strings.Contains(merged, "ShipReconciler") {
		t.Errorf("%+v\n%s", conflicts, merged)
	}
}

func TestASecondWebhookIsAddedToTheExpressionThatKubebuilderWrites(t *testing.T) {
	const base = `package v1

func SetupShipWebhookWithManager(mgr ctrl.Manager) error {
	webhook := ctrl.NewWebhookManagedBy(mgr, &shipv1.Ship{})
	webhook.WithDefaulter(&ShipCustomDefaulter{})
	return webhook.Complete()
}
`
	theirs := strings.Replace(base, "\treturn", "\twebhook.WithValidator(&ShipCustomValidator{})\n\treturn", 1)
	theirs += "\n// ShipCustomValidator validates ships.\ntype ShipCustomValidator struct{}\n"
	const ours = `package v1

// SetupShipWebhookWithManager registers the webhook.
func SetupShipWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &shipv1.Ship{}).
		WithDefaulter(&ShipCustomDefaulter{Depth: 3}).
		Complete()
}
`
	want := strings.Replace(ours, "\t\tComplete", "\t\tWithValidator(&ShipCustomValidator{}).\n\t\tComplete", 1)
	want += "\n// ShipCustomValidator validates ships.\ntype ShipCustomValidator struct{}\n"
	merged, conflicts := apply(t, "ship_webhook.go", base, ours, theirs)
	if diff := cmp.Diff(want, merged); diff != "" || len(conflicts) > 0 {
		t.Errorf("%v\n%s", conflicts, diff)
	}
}

func TestAFileThatDoesNotParseIsMergedByLines(t *testing.T) {
	merged, conflicts := apply(t, "main.go", before, before+"\nfunc broken( {\n", after)
	if !strings.Contains(merged, "func broken( {") || !strings.Contains(merged, "ShipReconciler") || len(conflicts) > 0 {
		t.Errorf("%+v\n%s", conflicts, merged)
	}
}

func FuzzGo(f *testing.F) {
	f.Add(before, mine, after)
	f.Add(after, after, before)
	f.Add("package a\n", "package a\n\nfunc f() {}\n", "package a\n\nimport \"os\"\n\nfunc g() { os.Exit(1) }\n")
	f.Fuzz(func(_ *testing.T, base, ours, theirs string) {
		_, _ = File("a.go", []byte(base), []byte(ours), []byte(theirs))
	})
}

func TestCodeThatRefersToAMissingVariableIsAConflict(t *testing.T) {
	theirs := strings.Replace(after, "\tif err := (&controller", "\tsetupLog.Info(\"ships\")\n\tif err := (&controller", 1)
	base := strings.Replace(before, "var scheme", "var setupLog = ctrl.Log\n\nvar scheme", 1)
	theirs = strings.Replace(theirs, "var scheme", "var setupLog = ctrl.Log\n\nvar scheme", 1)
	merged, conflicts := apply(t, "main.go", base, mine, theirs)
	if len(conflicts) != 1 || !strings.Contains(conflicts[0].Reason, "has no setupLog") || strings.Contains(merged, "setupLog") {
		t.Errorf("%+v\n%s", conflicts, merged)
	}
	if !strings.Contains(merged, "\"os\"") {
		t.Errorf("the import of os is missing:\n%s", merged)
	}
}
