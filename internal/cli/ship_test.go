package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shippable writes a project with a manager and its Deployment to a new folder.
func shippable(t *testing.T, settings string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                            "module example.com/sea\n\ngo 1.26\n",
		"cmd/main.go":                       "package main\n\nfunc main() {}\n",
		"config/default/kustomization.yaml": "resources: [manager.yaml]\n",
		"config/default/manager.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller-manager, namespace: sea}
spec: {template: {spec: {containers: [{name: manager, image: "sea:0.1.0", command: [/manager]}]}}}
`,
		"koboshi.yaml": settings,
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return dir
}

func TestShipWritesItsFilesAndNamesThem(t *testing.T) {
	dist := filepath.Join(t.TempDir(), "dist")
	dir := shippable(t, "ship: {platforms: [linux/amd64], image: registry.example.com/sea:v1}\n")
	code, out, messages := run(t, "ship", "--dir", dir, "--output-dir", dist)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	for _, want := range []string{"registry.example.com/sea:v1@sha256:", "linux/amd64, ", filepath.Join(dist, "image"), filepath.Join(dist, "install.yaml"), "chart    " + filepath.Join(dist, "helm", filepath.Base(dir))} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if !strings.Contains(messages, "manager for linux/amd64: built in ") || strings.Contains(messages, "arm64") {
		t.Errorf("%s", messages)
	}
}

func TestFlagsOfShipReplaceTheSettings(t *testing.T) {
	dir := shippable(t, "ship: {platforms: [linux/amd64], image: registry.example.com/sea:v1}\n")
	code, out, messages := run(t, "ship", "--dir", dir, "--output-dir", filepath.Join(t.TempDir(), "dist"),
		"--image", "other.example.com/sea:v2", "--platform", "linux/arm64", "--chart=false", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	var result struct {
		APIVersion, Image, Digest string
		Platforms                 []struct{ Platform string }
		Pushed                    bool
		Chart                     any
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatal(err)
	}
	if result.Image != "other.example.com/sea:v2@"+result.Digest || len(result.Platforms) != 1 || result.Platforms[0].Platform != "linux/arm64" || result.APIVersion != shipVersion || result.Chart != nil {
		t.Errorf("%+v", result)
	}
}

func TestShipMakesABundleInTheChannelsOfTheSettings(t *testing.T) {
	dist := filepath.Join(t.TempDir(), "dist")
	dir := shippable(t, "ship: {platforms: [linux/amd64], image: 'registry.example.com/sea:v1.2.0', olm: {channels: [stable, fast]}}\n")
	code, out, messages := run(t, "ship", "--dir", dir, "--output-dir", dist, "--olm")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	for _, want := range []string{filepath.Join(dist, "bundle"), "registry.example.com/sea-bundle:v1.2.0@sha256:"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	annotations, err := os.ReadFile(filepath.Join(dist, "bundle", "metadata", "annotations.yaml"))
	if err != nil || !strings.Contains(string(annotations), "channels.v1: stable,fast\n") || !strings.Contains(string(annotations), "default.v1: stable\n") {
		t.Errorf("%s, %v", annotations, err)
	}
}

func TestAWrongCallOfShipIsRefusedBeforeTheBuild(t *testing.T) {
	dir := shippable(t, "")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an unknown format":   {[]string{"-o", "yaml"}, `unknown output format "yaml"`},
		"an unknown platform": {[]string{"--platform", "linux/sparc"}, "cannot build for"},
		"no image":            {[]string{"--image", "a b"}, "name it as registry.example.com/team/operator:v1.2.0"},
		"a digest":            {[]string{"--image", "a@sha256:" + strings.Repeat("0", 64)}, "name it as"},
		"no base":             {[]string{"--base", "a b"}, "is not the name of an image"},
		"an unknown cluster":  {[]string{"--load", "swarm"}, "use one of containerd, docker, k3d"},
		"an unknown source":   {[]string{"--certificates", "vault"}, "use cert-manager or self-signed"},
		"OLM as the source":   {[]string{"--certificates", "olm"}, "make one with --olm"},
		"an argument":         {[]string{"now"}, "takes no arguments"},
		"no verification":     {[]string{"--upgrade-from", "v1"}, "--upgrade-from is for --verify; add it"},
		"two sources":         {[]string{"--verify", "--samples", "a", "--scenario", "b"}, "omit one of them"},
		"no scenario":         {[]string{"--verify", "--scenario", "none.yaml"}, "reading scenarios: open none.yaml"},
		"no old version":      {[]string{"--verify", "--upgrade-from", "v1"}, "--upgrade-from v1 is no folder, and no revision of git"},
	} {
		code, _, messages := run(t, append([]string{"ship", "--dir", dir}, c.args...)...)
		if code != exitUsage || !strings.Contains(messages, c.want) || strings.Contains(messages, "built") {
			t.Errorf("%s: exit code %d, %s", name, code, messages)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if code, _, messages := run(t, "ship", "--dir", dir); code != exitUsage || !strings.Contains(messages, "SOURCE_DATE_EPOCH") {
		t.Errorf("exit code %d, %s", code, messages)
	}
}
