package olm_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/ship/olm"
)

var update = flag.Bool("update", false, "write the golden files again")

// objects parses YAML documents.
func objects(t *testing.T, text string) (all []unstructured.Unstructured) {
	t.Helper()
	for _, part := range strings.Split(text, "---\n") {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(part), &content); err != nil {
			t.Fatal(err)
		}
		if content != nil {
			all = append(all, unstructured.Unstructured{Object: content})
		}
	}
	return all
}

// archive reads a golden file as a mapping from names to contents.
func archive(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range parsed.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

// boats returns the options of the bundle in testdata/boats.txtar.
func boats(t *testing.T) olm.Options {
	t.Helper()
	files := archive(t, "testdata/boats.txtar")
	return olm.Options{
		Package: "boats", Version: "1.2.0", Objects: objects(t, files["objects.yaml"]), Samples: objects(t, files["samples.yaml"]),
		Base: objects(t, files["base.yaml"])[0].Object, Image: "sea@sha256:" + strings.Repeat("0", 64),
		Repository: "https://github.com/sea/boats", Platforms: []string{"linux/amd64", "linux/arm64"},
		Channels: []string{"stable", "candidate"}, Created: time.Unix(0, 0),
		Marked: []olm.Definition{{
			Kind: schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "BigBoat"}, Order: 1,
			Spec:      []olm.Descriptor{{Path: "sails", DisplayName: "Number of sails", XDescriptors: []string{"urn:a"}}},
			Resources: []olm.Resource{{Kind: "Deployment", Version: "v1"}},
		}},
	}
}

func mustMake(t *testing.T, o olm.Options) *olm.Bundle {
	t.Helper()
	b, err := olm.Make(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// csvOf returns the ClusterServiceVersion of a bundle.
func csvOf(t *testing.T, b *olm.Bundle) map[string]any {
	t.Helper()
	for path, text := range b.Files {
		if strings.HasSuffix(path, ".clusterserviceversion.yaml") {
			return objects(t, string(text))[0].Object
		}
	}
	t.Fatal("the bundle has no ClusterServiceVersion")
	return nil
}

func TestTheBundleOfAnOperatorWithEverything(t *testing.T) {
	b := mustMake(t, boats(t))
	var got bytes.Buffer
	fmt.Fprintf(&got, "The bundle of boats.txtar.\n-- notes --\n%s\n", strings.Join(b.Notes, "\n"))
	for _, path := range slices.Sorted(maps.Keys(b.Files)) {
		fmt.Fprintf(&got, "-- %s --\n%s", path, b.Files[path])
	}
	const golden = "testdata/bundle.txtar"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s; update it with -update\n%s", golden, diff)
	}
}

func TestTheSameOptionsGiveTheSameBundleAndStayAsTheyAre(t *testing.T) {
	o := boats(t)
	one := mustMake(t, o)
	if diff := cmp.Diff(boats(t), o); diff != "" {
		t.Errorf("the options were changed:\n%s", diff)
	}
	for range 10 { // the order of maps is random
		if diff := cmp.Diff(one, mustMake(t, o)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// change returns the options after a change to one object.
func change(t *testing.T, kind, name string, edit func(map[string]any)) olm.Options {
	t.Helper()
	o := boats(t)
	for _, object := range o.Objects {
		if object.GetKind() == kind && object.GetName() == name {
			edit(object.Object)
			return o
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return o
}

// with returns the options with one more object.
func with(t *testing.T, text string) olm.Options {
	t.Helper()
	o := boats(t)
	o.Objects = append(o.Objects, objects(t, text)...)
	return o
}

// noise returns a text that can hardly be compressed, and always the same.
func noise(n int) string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[random.IntN(64)]
	}
	return string(text)
}

func TestWhatABundleCannotHaveIsRefusedWithItsReason(t *testing.T) {
	webhook := func(edit func(w map[string]any)) olm.Options {
		return change(t, "MutatingWebhookConfiguration", "boats", func(c map[string]any) {
			edit(c["webhooks"].([]any)[0].(map[string]any))
		})
	}
	withRules := func(rules string) olm.Options {
		return webhook(func(w map[string]any) { w["rules"] = objects(t, "rules: "+rules)[0].Object["rules"] })
	}
	wrongModes := boats(t)
	wrongModes.Base["spec"].(map[string]any)["installModes"] = []any{map[string]any{"type": "OwnNamespace", "supported": true}}
	noDeployment := boats(t)
	noDeployment.Objects = noDeployment.Objects[:1]
	longName := boats(t)
	longName.Package = strings.Repeat("a", 70)
	for name, c := range map[string]struct {
		options olm.Options
		want    string
	}{
		"a kind that OLM does not create": {with(t, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: sea}}"), "DaemonSet d: OLM creates no objects of this kind"},
		"a kind of another group":         {with(t, "{apiVersion: other.example.com/v1, kind: Service, metadata: {name: s, namespace: sea}}"), "Service s: OLM creates no objects of this kind"},
		"a custom resource":               {with(t, "{apiVersion: sea.example.com/v1, kind: BigBoat, metadata: {name: b, namespace: sea}}"), "BigBoat b"},
		"another namespace":               {with(t, "{apiVersion: v1, kind: Namespace, metadata: {name: lake}}"), "Namespace lake: OLM creates no namespaces"},
		"an object in another namespace":  {with(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: lake}}"), "ConfigMap c: it is in the namespace lake"},
		"no Deployment":                   {noDeployment, "the manifests have none"},
		"a webhook with an address":       {webhook(func(w map[string]any) { w["clientConfig"] = map[string]any{"url": "https://a"} }), "it is called by an address"},
		"a webhook of another Service": {webhook(func(w map[string]any) {
			w["clientConfig"] = map[string]any{"service": map[string]any{"name": "other"}}
		}), "its Service other is not part of the installation"},
		"a Service without Pods":              {change(t, "Service", "hooks", func(s map[string]any) { s["spec"].(map[string]any)["selector"] = map[string]any{"app": "no"} }), "Service hooks selects no Deployment"},
		"a webhook for all groups":            {withRules(`[{apiGroups: ["*"], resources: [pods]}]`), "OLM's own API group"},
		"a webhook for webhooks":              {withRules(`[{apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations]}]`), "webhook configurations"},
		"a conversion in some namespaces":     {wrongModes, "correct spec.installModes"},
		"a name that is too long for a label": {longName, "not a valid name"},
		"more than OLM can store":             {with(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: big, namespace: sea}, data: {a: '"+noise(2<<20)+"'}}"), "OLM stores at most 1024 kB"},
		"two objects with the same file":      {with(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: 'a:b', namespace: sea}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a-b, namespace: sea}}"), "two objects of the bundle would be the file"},
	} {
		if _, err := olm.Make(c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAVersionIsASemanticTag(t *testing.T) {
	for tag, want := range map[string]string{"v1.2.0": "1.2.0", "1.2.0": "1.2.0", "v1.2.0-rc.1": "1.2.0-rc.1", "latest": "", "v1.2": "", "1": "", "": "", "v01.2.0": ""} {
		got, err := olm.Version(tag)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", tag, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "--image registry.example.com/team/operator:v1.2.0") {
			t.Errorf("%q: no next action in %v", tag, err)
		}
	}
}

func TestNamesBecomeTitles(t *testing.T) {
	for name, want := range map[string]string{
		"BigBoat": "Big Boat", "S3Bucket": "S3 Bucket", "URLMap": "URLMap", "sails": "Sails", "boats-for-all": "Boats For All", "maxSize": "Max Size", "": "",
	} {
		if got := olm.Title(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// plain returns an operator with one Deployment and nothing else.
func plain(t *testing.T, container string) olm.Options {
	t.Helper()
	return olm.Options{
		Package: "plain", Version: "0.1.0", Channels: []string{"alpha"}, Created: time.Unix(0, 0),
		Objects: objects(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: plain, namespace: plain-system}
spec: {template: {spec: {serviceAccountName: plain, containers: [`+container+`]}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: plain, namespace: plain-system}
`),
	}
}

func supported(t *testing.T, o olm.Options) (modes []string) {
	t.Helper()
	spec := csvOf(t, mustMake(t, o))["spec"].(map[string]any)
	for _, mode := range spec["installModes"].([]any) {
		if mode := mode.(map[string]any); mode["supported"] == true {
			modes = append(modes, mode["type"].(string))
		}
	}
	return modes
}

func TestInstallModesAreThoseThatTheManagerSupports(t *testing.T) {
	const image = "name: m, image: 'a:v1'"
	base := plain(t, "{"+image+"}")
	base.Base = map[string]any{"spec": map[string]any{"installModes": []any{map[string]any{"type": "MultiNamespace", "supported": true}}}}
	for name, c := range map[string]struct {
		options olm.Options
		want    []string
	}{
		"a manager for all namespaces":           {plain(t, "{"+image+"}"), []string{"AllNamespaces"}},
		"a manager with the variable":            {plain(t, "{"+image+", env: [{name: WATCH_NAMESPACE, value: ''}]}"), []string{"OwnNamespace", "SingleNamespace", "AllNamespaces"}},
		"a manager whose base lists modes":       {base, []string{"MultiNamespace"}},
		"a manager that converts custom objects": {boats(t), []string{"AllNamespaces"}},
	} {
		if got := supported(t, c.options); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	text := fmt.Sprint(csvOf(t, mustMake(t, plain(t, "{"+image+", env: [{name: WATCH_NAMESPACE, value: ''}]}"))))
	if !strings.Contains(text, "metadata.annotations['olm.targetNamespaces']") {
		t.Errorf("the manager does not get the namespaces from OLM: %s", text)
	}
}

func TestAnAccountWithoutRightsIsStillMadeByOLM(t *testing.T) {
	b := mustMake(t, plain(t, "{name: m, image: 'a:v1'}"))
	strategy := csvOf(t, b)["spec"].(map[string]any)["install"].(map[string]any)["spec"].(map[string]any)
	want := []any{map[string]any{"serviceAccountName": "plain", "rules": []any{}}}
	if diff := cmp.Diff(want, strategy["permissions"]); diff != "" {
		t.Error(diff)
	}
	if len(b.Files) != 2 {
		t.Errorf("the account is also a file: %v", slices.Sorted(maps.Keys(b.Files)))
	}
}

func TestAnImageWithoutADigestIsNamedInANote(t *testing.T) {
	b := mustMake(t, plain(t, "{name: m, image: 'a:v1'}, {name: m, image: 'b@sha256:"+strings.Repeat("0", 64)+"'}"))
	if len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "a:v1 without a digest") {
		t.Errorf("%q", b.Notes)
	}
	images := csvOf(t, b)["spec"].(map[string]any)["relatedImages"]
	want := []any{map[string]any{"name": "m", "image": "a:v1"}, map[string]any{"name": "m-2", "image": "b@sha256:" + strings.Repeat("0", 64)}}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Error(diff)
	}
}

func TestPodsWithoutAnAccountNeedNoneOfOLM(t *testing.T) {
	o := plain(t, "{name: m, image: 'a:v1'}")
	spec := o.Objects[0].Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	delete(spec, "serviceAccountName")
	strategy := csvOf(t, mustMake(t, o))["spec"].(map[string]any)["install"].(map[string]any)["spec"].(map[string]any)
	if strategy["permissions"] != nil || strategy["clusterPermissions"] != nil {
		t.Errorf("OLM would take over the account of all Pods: %v", strategy)
	}
}

func TestACertificateIsFoundByItsHostOrByAnAnnotation(t *testing.T) {
	for name, c := range map[string]struct {
		host, annotation string
		webhook          bool
	}{
		"the host of the Service":            {"hooks.sea.svc", "", true},
		"an annotation":                      {"*.sea.svc", "sea/serving", true},
		"neither":                            {"other.sea.svc", "sea/other", false},
		"the same name in another namespace": {"hooks.lake.svc", "lake/serving", false},
	} {
		o := change(t, "Certificate", "serving", func(c2 map[string]any) { c2["spec"].(map[string]any)["dnsNames"] = []any{c.host} })
		for _, object := range o.Objects {
			if object.GetAnnotations()["cert-manager.io/inject-ca-from"] != "" {
				object.SetAnnotations(map[string]string{"cert-manager.io/inject-ca-from": c.annotation})
			}
		}
		text := string(mustMake(t, o).Files["manifests/boats.clusterserviceversion.yaml"])
		if got := strings.Contains(text, "--webhook-cert=/tmp/k8s-webhook-server/serving-certs/tls.crt"); got != c.webhook {
			t.Errorf("%s: the webhook has the certificate of OLM: %v, want %v", name, got, c.webhook)
		}
	}
}

func TestOnlyADeploymentWithWebhooksGetsTheirCertificate(t *testing.T) {
	o := with(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: sea}
spec:
  template:
    spec:
      containers: [{name: m, image: "a:v1", args: [--cert, /tls/tls.crt, --verbose], volumeMounts: [{name: tls, mountPath: /tls}]}]
      volumes: [{name: tls, secret: {secretName: hooks-tls}}]
`)
	b := mustMake(t, o)
	deployments := at[[]any](csvOf(t, b), "spec", "install", "spec", "deployments")
	pod := at[map[string]any](deployments[1], "spec", "template", "spec")
	container := at[map[string]any](at[[]any](pod, "containers")[0])
	if pod["volumes"] != nil || container["volumeMounts"] != nil || !slices.Equal(at[[]any](container, "args"), []any{"--verbose"}) {
		t.Errorf("%v", pod)
	}
	if notes := strings.Join(b.Notes, "\n"); !strings.Contains(notes, "Deployment other has no volume tls and nothing that names its files: --cert /tls/tls.crt") {
		t.Errorf("%s", notes)
	}
}
