package project

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// quietSettings lists the settings of a manager's configuration file that a check turns off,
// as it turns off the flags of the same meaning.
var quietSettings = []struct {
	path  []string
	value any
}{
	{[]string{"leaderElection", "leaderElect"}, false},
	{[]string{"metrics", "bindAddress"}, "0"},
	{[]string{"health", "healthProbeBindAddress"}, ":0"},
	// The lab issues the certificate of the webhooks, and the API server trusts no other.
	{[]string{"internalCertManagement", "enable"}, false},
}

// quietFiles turns off, in the configuration files of a manager among the files, what would
// conflict between two instances on one machine. It returns the names of the changed files.
// Kubebuilder 3 offered such files, and some projects still use them.
func quietFiles(files map[string][]byte) (changed []string) {
	for _, name := range sorted(files) {
		var content map[string]any
		if yaml.Unmarshal(files[name], &content) != nil || content["apiVersion"] == nil || content["kind"] == nil {
			continue
		}
		quiet := false
		for _, setting := range quietSettings {
			value, found, err := unstructured.NestedFieldNoCopy(content, setting.path...)
			if err != nil || !found || value == setting.value {
				continue
			}
			quiet = unstructured.SetNestedField(content, setting.value, setting.path...) == nil || quiet
		}
		if !quiet {
			continue
		}
		if data, err := yaml.Marshal(content); err == nil {
			files[name] = data
			changed = append(changed, name)
		}
	}
	return changed
}
