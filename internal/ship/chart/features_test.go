package chart_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/ship/chart"
)

// objectsOf returns the objects with a kind, by name.
func objectsOf(objects map[string]map[string]any, kind string) map[string]unstructured.Unstructured {
	found := map[string]unstructured.Unstructured{}
	for key, content := range objects {
		if o := (unstructured.Unstructured{Object: content}); o.GetKind() == kind {
			found[strings.TrimPrefix(key, kind+" ")] = o
		}
	}
	return found
}

// args returns the arguments of the first container of the only Deployment.
func args(t *testing.T, objects map[string]map[string]any) []string {
	t.Helper()
	for _, deployment := range objectsOf(objects, "Deployment") {
		containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		container, ok := containers[0].(map[string]any)
		if !ok {
			t.Fatal("there is no container")
		}
		list, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	t.Fatal("there is no Deployment")
	return nil
}

func TestAManagerThatWatchesSomeNamespacesHasRightsOnlyThere(t *testing.T) {
	o := operators[0]
	all := release(t, made(t, o.objects(t), o.options()), o.name, o.namespace(), set("watchNamespaces", []any{"team-a", "team-b"}))
	if got := args(t, all); !slices.Contains(got, "--namespaces=team-a,team-b") {
		t.Errorf("the arguments are %q", got)
	}
	for _, namespace := range []string{"team-a", "team-b"} {
		binding, ok := all["RoleBinding "+namespace+"/storagebucket-manager-rolebinding"]
		role, _, _ := unstructured.NestedString(binding, "roleRef", "name")
		if !ok || role != "storagebucket-manager-role" {
			t.Errorf("in %s, the manager has %v", namespace, binding)
		}
	}
	// The manager reads the UID of kube-system, and Namespaces are in no namespace.
	want := []string{"storagebucket-manager-rolebinding-cluster", "storagebucket-metrics-auth-rolebinding"}
	var names []string
	for _, o := range objectsOf(all, "ClusterRoleBinding") {
		names = append(names, o.GetName())
	}
	slices.Sort(names)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("cluster-wide bindings (-want +got):\n%s", diff)
	}
	rules, _, _ := unstructured.NestedSlice(all["ClusterRole /storagebucket-manager-role-cluster"], "rules")
	if len(rules) != 1 || !strings.Contains(fmt.Sprint(rules), "kube-system") {
		t.Errorf("for the whole cluster, the manager has %v", rules)
	}
}

func TestAnEnvironmentVariableListsTheNamespacesAsWell(t *testing.T) {
	o := operators[2]
	options := o.options()
	options.WatchNamespaces = "WATCH_NAMESPACE"
	c := made(t, o.objects(t), options)
	all := release(t, c, o.name, o.namespace(), set("watchNamespaces", []any{"a", "b"}, "extraEnv", []any{map[string]any{"name": "X", "value": "y"}}))
	text := fmt.Sprint(objectsOf(all, "Deployment"))
	if !strings.Contains(text, "map[name:WATCH_NAMESPACE value:a,b]") || !strings.Contains(text, "map[name:X value:y]") {
		t.Error(text)
	}
	options.WatchNamespaces = "--leader-elect"
	if _, err := chart.Make(o.objects(t), options); err == nil || !strings.Contains(err.Error(), "the manifests set --leader-elect") {
		t.Errorf("%v", err)
	}
	options.WatchNamespaces = ""
	if _, err := render(t, made(t, o.objects(t), options), "a", "b", set("watchNamespaces", []any{"a"})); err == nil || !strings.Contains(err.Error(), "watchNamespaces") {
		t.Errorf("a manager that cannot watch some namespaces has the value: %v", err)
	}
}

func TestSecretsReplaceCertManager(t *testing.T) {
	for _, o := range operators[:2] {
		c := made(t, o.objects(t), o.options())
		all := release(t, c, o.name, o.namespace(), set("certificates.mode", "secret", "certificates.caBundle", "Y2E="))
		bundles := 0
		for key, content := range all {
			text := fmt.Sprint(content)
			if strings.Contains(text, "cert-manager.io") {
				t.Errorf("%s needs cert-manager: %.500s", key, text)
			}
			bundles += strings.Count(text, "caBundle:Y2E=")
		}
		if want := map[string]int{"storagebucket": 1, "markdownview": 2}[o.name]; bundles != want {
			t.Errorf("%s: %d webhooks trust the authority, want %d", o.name, bundles, want)
		}
	}
}

func TestMetricsCanBeTurnedOff(t *testing.T) {
	o := operators[2]
	c := made(t, o.objects(t), o.options())
	all := release(t, c, o.name, o.namespace(), set("metrics.enabled", false, "metrics.serviceMonitor.enabled", true))
	for key := range all {
		if strings.Contains(key, "metrics") {
			t.Errorf("there is still %s", key)
		}
	}
	if got := args(t, all); !slices.Contains(got, "--metrics-bind-address=0") {
		t.Errorf("the arguments are %q", got)
	}
	all = release(t, c, o.name, o.namespace(), set("metrics.serviceMonitor.enabled", true, "metrics.serviceMonitor.labels.release", "prometheus", "networkPolicy.enabled", true))
	monitor := all["ServiceMonitor foo-system/foo-controller-manager-metrics-monitor"]
	if text := fmt.Sprint(monitor); !strings.Contains(text, "release:prometheus") || !strings.Contains(text, "insecureSkipVerify:true") || !strings.Contains(text, "port:https") {
		t.Error(text)
	}
	policy := all["NetworkPolicy foo-system/foo-controller-manager"]
	if text := fmt.Sprint(policy); !strings.Contains(text, "metrics:enabled") || !strings.Contains(text, "port:8443") {
		t.Error(text)
	}
}

// without returns objects without those of a kind.
func without(objects []unstructured.Unstructured, kind string) []unstructured.Unstructured {
	return slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool { return o.GetKind() == kind })
}

func TestTheBudgetForEvictionsIsThatOfTheValues(t *testing.T) {
	o := operators[2]
	for _, test := range []struct {
		objects []unstructured.Unstructured
		values  map[string]any
		want    map[string]any // nil if there is no budget
	}{
		{o.objects(t), nil, map[string]any{"maxUnavailable": float64(1)}},
		{o.objects(t), set("podDisruptionBudget.enabled", false), nil},
		{o.objects(t), set("podDisruptionBudget.maxUnavailable", int64(0)), map[string]any{"maxUnavailable": float64(0)}},
		{o.objects(t), set("podDisruptionBudget.minAvailable", int64(2)), map[string]any{"minAvailable": float64(2)}},
		{o.objects(t), set("podDisruptionBudget.minAvailable", "50%"), map[string]any{"minAvailable": "50%"}},
		{without(o.objects(t), "PodDisruptionBudget"), nil, nil},
		{without(o.objects(t), "PodDisruptionBudget"), set("podDisruptionBudget.enabled", true), map[string]any{"maxUnavailable": float64(1)}},
	} {
		all := release(t, made(t, test.objects, o.options()), "blue", "sky", test.values)
		if test.want != nil {
			test.want["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
			test.want["selector"], _, _ = unstructured.NestedMap(all["Deployment sky/blue-foo-controller-manager"], "spec", "selector")
		}
		got, _, _ := unstructured.NestedMap(all["PodDisruptionBudget sky/blue-foo-controller-manager"], "spec")
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.values, diff)
		}
	}
}

func TestABudgetWithALeastNumberOfPodsKeepsIt(t *testing.T) {
	o := operators[2]
	objects := o.objects(t)
	for i := range objects {
		if objects[i].GetKind() == "PodDisruptionBudget" {
			unstructured.RemoveNestedField(objects[i].Object, "spec", "maxUnavailable")
			if err := unstructured.SetNestedField(objects[i].Object, "25%", "spec", "minAvailable"); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := made(t, objects, o.options())
	for _, test := range []struct {
		values      map[string]any
		least, most any
	}{
		{nil, "25%", nil},
		{set("podDisruptionBudget.minAvailable", ""), nil, float64(1)},
	} {
		spec, _, _ := unstructured.NestedMap(release(t, c, "blue", "sky", test.values)["PodDisruptionBudget sky/blue-foo-controller-manager"], "spec")
		if spec["minAvailable"] != test.least || spec["maxUnavailable"] != test.most {
			t.Errorf("%v: the budget is %v", test.values, spec)
		}
	}
}

func TestTheManagerHasThePriorityClassOfTheValuesOrItsOwn(t *testing.T) {
	for _, test := range []struct {
		operator operator
		values   map[string]any
		want     string
	}{
		{operators[0], nil, "blue-storagebucket-manager"},
		{operators[0], set("priorityClassName", "system-cluster-critical"), "system-cluster-critical"},
		{operators[2], nil, ""},
		{operators[2], set("priorityClassName", "important"), "important"},
	} {
		all := release(t, made(t, test.operator.objects(t), test.operator.options()), "blue", "sky", test.values)
		deployment := all["Deployment sky/blue-"+test.operator.name+"-controller-manager"]
		got, _, _ := unstructured.NestedString(deployment, "spec", "template", "spec", "priorityClassName")
		if got != test.want {
			t.Errorf("%s with %v: the class is %q, want %q", test.operator.name, test.values, got, test.want)
		}
		if strings.HasPrefix(got, "blue-") && all["PriorityClass /"+got] == nil {
			t.Errorf("%s: there is no PriorityClass %s", test.operator.name, got)
		}
	}
}

func TestCRDsAreUpgradedAndKept(t *testing.T) {
	o := operators[0]
	c := made(t, o.objects(t), o.options())
	for _, test := range []struct {
		values map[string]any
		crds   int
		policy string
	}{
		{nil, 2, "keep"},
		{set("crds.keep", false), 2, ""},
		{set("crds.enabled", false), 0, ""},
	} {
		crds := objectsOf(release(t, c, "a", "b", test.values), "CustomResourceDefinition")
		if len(crds) != test.crds {
			t.Errorf("%v: %d CRDs", test.values, len(crds))
		}
		for name, crd := range crds {
			if got := crd.GetAnnotations()["helm.sh/resource-policy"]; got != test.policy {
				t.Errorf("%v: the policy of %s is %q", test.values, name, got)
			}
		}
	}
	for path := range c.Files {
		if strings.HasPrefix(path, "crds/") {
			t.Errorf("helm upgrade would not change %s", path)
		}
	}
}

func TestTheImageOfTheValuesIsEverywhere(t *testing.T) {
	o := operators[1]
	digest := "sha256:" + strings.Repeat("0a", 32)
	options, objects := o.options(), o.objects(t)
	c := made(t, objects, options)
	for _, test := range []struct {
		values map[string]any
		want   string
	}{
		{nil, "markdownview:0.1.0"},
		{set("image.repository", "mirror:5000/view"), "mirror:5000/view:0.1.0"},
		{set("image.tag", "v2"), "markdownview:v2"},
		{set("image.digest", digest), "markdownview@" + digest},
		{set("image.tag", "v2", "image.digest", digest), "markdownview:v2@" + digest},
	} {
		all := release(t, c, "a", "b", test.values)
		if got := args(t, all)[0]; got != "--viewer-image="+test.want {
			t.Errorf("%v: the argument is %s", test.values, got)
		}
		if text := fmt.Sprint(objectsOf(all, "Deployment")); !strings.Contains(text, "image:"+test.want+" ") {
			t.Errorf("%v: %s is missing in %s", test.values, test.want, text)
		}
	}
}

func TestTheVersionIsTheTag(t *testing.T) {
	for tag, want := range map[string]string{
		"v1.2.0": "1.2.0", "1.2.0": "1.2.0", "v1.2.0-rc.1": "1.2.0-rc.1", "0.1.0-dev": "0.1.0-dev",
		"latest": chart.Unversioned, "v1.2": chart.Unversioned, "1": chart.Unversioned, "01.2.3": chart.Unversioned, "": chart.Unversioned, "vv1.2.3": chart.Unversioned,
	} {
		if got := chart.Version(tag); got != want {
			t.Errorf("%q: %s, want %s", tag, got, want)
		}
	}
}

// The project has texts that look like templates, an object in another namespace, and files of the
// person.
func TestTheChartOfASmallProjectIsAsRecorded(t *testing.T) {
	const file = "testdata/sea.txtar"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	overlay := map[string][]byte{}
	var input []txtar.File
	var manifest string
	want := map[string]string{}
	for _, f := range archive.Files {
		switch name, ok := strings.CutPrefix(f.Name, "config/chart/"); {
		case ok:
			overlay[name] = f.Data
			input = append(input, f)
		case f.Name == "objects.yaml":
			manifest = string(f.Data)
			input = append(input, f)
		default:
			want[f.Name] = string(f.Data)
		}
	}
	objects := parse(t, manifest)
	c := made(t, objects, chart.Options{Project: "sea", Image: "sea:v1.0.0", Entrypoint: "/manager", Tag: "v1.0.0", Overlay: overlay})
	got := map[string]string{}
	for path, text := range c.Files {
		got[path] = string(text)
	}
	if *update {
		archive.Files = input
		for _, path := range slices.Sorted(maps.Keys(got)) {
			archive.Files = append(archive.Files, txtar.File{Name: path, Data: []byte(got[path])})
		}
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run go test ./internal/ship/chart -update, and read the difference (-want +got):\n%s", diff)
	}
	rendered := release(t, c, "sea", "sea-system", nil)
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "PrometheusRule" {
			key := strings.Trim(fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()), "/")
			if diff := cmp.Diff(o.Object["spec"], rendered[key]["spec"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", key, diff)
			}
		}
	}
}

func TestAWrongFileOfThePersonIsNamed(t *testing.T) {
	o := operators[2]
	objects := o.objects(t)
	for name, test := range map[string]struct {
		overlay map[string]string
		want    string
	}{
		"a misspelt value":            {map[string]string{"values.yaml": "replica: 2\n"}, "the chart has no value replica, and no other file in this folder uses it; did you mean replicas?"},
		"an inner misspelt value":     {map[string]string{"values.yaml": "image: {tags: v1}\n"}, "no value image.tags, and no other file in this folder uses it; did you mean image.tag?"},
		"an unused value":             {map[string]string{"values.yaml": "anchor: {depth: 2}\n"}, "use it in a template in config/chart"},
		"a value with a wrong type":   {map[string]string{"values.yaml": "replicas: two\n"}, "the values of the chart are not valid"},
		"a list instead of values":    {map[string]string{"values.yaml": "- a\n"}, "config/chart/values.yaml: the file has no fields"},
		"a template that is no text":  {map[string]string{"templates/anchor.yaml": "{{ if }}\n"}, "templates/anchor.yaml"},
		"a template without a helper": {map[string]string{"templates/anchor.yaml": `{{ include "fooo.fullname" . }}`}, "fooo.fullname"},
		"a schema that is no JSON":    {map[string]string{"values.schema.json": "a: b\n"}, "config/chart/values.schema.json"},
		"another name":                {map[string]string{"Chart.yaml": "name: bar\n"}, "remove the line"},
		"a version that is none":      {map[string]string{"Chart.yaml": "version: one\n"}, "correct the files in config/chart"},
	} {
		options := o.options()
		options.Overlay = map[string][]byte{}
		for path, text := range test.overlay {
			options.Overlay[path] = []byte(text)
		}
		if _, err := chart.Make(objects, options); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

func TestAnOverlayWithOnlyCommentsChangesNothing(t *testing.T) {
	o := operators[2]
	options := o.options()
	want := made(t, o.objects(t), options)
	options.Overlay = map[string][]byte{"values.yaml": []byte("# nothing yet\n"), "Chart.yaml": nil}
	if diff := cmp.Diff(want, made(t, o.objects(t), options)); diff != "" {
		t.Error(diff)
	}
}

func TestNamesWithoutACommonPrefixStay(t *testing.T) {
	o := operators[2]
	objects := o.objects(t)
	for i := range objects {
		if objects[i].GetName() == "foo-metrics-reader" {
			objects[i].SetName("reader")
		}
	}
	c := made(t, objects, o.options())
	all := release(t, c, "blue", "sky", nil)
	if all["ClusterRole /reader"] == nil || all["Deployment sky/foo-controller-manager"] == nil {
		t.Errorf("the objects are %q", slices.Sorted(maps.Keys(all)))
	}
	notes, err := render(t, c, "blue", "sky", nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := notes["foo/templates/NOTES.txt"]; !strings.Contains(text, "--namespace sky rollout status deployment/foo-controller-manager\n") {
		t.Error(text)
	}
}

func TestALongNameOfAReleaseIsCut(t *testing.T) {
	o := operators[0]
	all := release(t, made(t, o.objects(t), o.options()), strings.Repeat("long", 13), "sky", nil)
	for key, service := range objectsOf(all, "Service") {
		if name := service.GetName(); len(name) > 63 {
			t.Errorf("%s has a name with %d characters", key, len(name))
		}
	}
}

func TestSecretsWithThePrefixFollowTheRelease(t *testing.T) {
	o := operators[1]
	objects := o.objects(t)
	for i := range objects {
		if objects[i].GetName() == "markdownview-serving-cert" {
			if err := unstructured.SetNestedField(objects[i].Object, "markdownview-tls", "spec", "secretName"); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := made(t, objects, o.options())
	texts, err := render(t, c, "blue", "sky", set("certificates.mode", "secret", "certificates.caBundle", "Y2E="))
	if err != nil {
		t.Fatal(err)
	}
	if notes := texts["markdownview/templates/NOTES.txt"]; !strings.Contains(notes, "\n  blue-markdownview-tls\n") {
		t.Error(notes)
	}
	secret, _, _ := unstructured.NestedString(release(t, c, "blue", "sky", nil)["Certificate sky/blue-markdownview-serving-cert"], "spec", "secretName")
	if secret != "blue-markdownview-tls" {
		t.Errorf("the Secret is %s", secret)
	}
	if values := string(c.Files["values.yaml"]); !strings.Contains(values, "<fullname>-tls") {
		t.Error(values)
	}
}

func TestAProjectMayBeCalledLikeANumber(t *testing.T) {
	objects := operators[2].objects(t)
	for i := range objects {
		if name, ok := strings.CutPrefix(objects[i].GetName(), "foo-controller-manager"); ok {
			objects[i].SetName("controller-manager" + name)
		}
	}
	options := operators[2].options()
	options.Project = "002"
	if c := made(t, objects, options); c.Name != "002" {
		t.Errorf("the chart is %s", c.Name)
	}
}
