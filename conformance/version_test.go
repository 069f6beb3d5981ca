package conformance

import (
	"debug/buildinfo"
	"encoding/json"
	"os/exec"
	"testing"
)

func TestTheVersionInJSONHasTheRevisionAndTheModulesOfTheProgram(t *testing.T) {
	out, err := exec.Command(koboshi, "version", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Koboshi, Revision, Etcd string
		Modified                *bool
		Modules                 map[string]string
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	build, err := buildinfo.ReadFile(koboshi)
	if err != nil {
		t.Fatal(err)
	}
	settings, linked := map[string]string{}, map[string]string{}
	for _, s := range build.Settings {
		settings[s.Key] = s.Value
	}
	for _, module := range build.Deps {
		linked[module.Path] = module.Version
	}
	if got.Koboshi != build.Main.Version || got.Revision != settings["vcs.revision"] {
		t.Errorf("the version is %q of revision %q, want %q of %q", got.Koboshi, got.Revision, build.Main.Version, settings["vcs.revision"])
	}
	if modified, known := settings["vcs.modified"]; known != (got.Modified != nil) || known && *got.Modified != (modified == "true") {
		t.Errorf("modified is %v, and the build information says %q", got.Modified, modified)
	}
	if len(got.Modules) < 5 {
		t.Errorf("only these modules are reported: %v", got.Modules)
	}
	got.Modules["go.etcd.io/etcd/server/v3"] = got.Etcd
	for module, version := range got.Modules {
		if version == "" || linked[module] != version {
			t.Errorf("%s is %q, and %q is linked", module, version, linked[module])
		}
	}
}
