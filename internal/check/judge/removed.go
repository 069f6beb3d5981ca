package judge

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// removal is the end of a version of an API group: the minor version of Kubernetes that no longer
// serves it, and the version that replaces it.
type removal struct {
	minor       int
	replacement string
}

// removals lists the versions of API groups that Kubernetes has removed, according to its deprecated
// API migration guide.
var removals = map[string]removal{
	"extensions/v1beta1":                   {16, "apps/v1, networking.k8s.io/v1 and policy/v1"},
	"apps/v1beta1":                         {16, "apps/v1"},
	"apps/v1beta2":                         {16, "apps/v1"},
	"admissionregistration.k8s.io/v1beta1": {22, "admissionregistration.k8s.io/v1"},
	"apiextensions.k8s.io/v1beta1":         {22, "apiextensions.k8s.io/v1"},
	"apiregistration.k8s.io/v1beta1":       {22, "apiregistration.k8s.io/v1"},
	"authentication.k8s.io/v1beta1":        {22, "authentication.k8s.io/v1"},
	"authorization.k8s.io/v1beta1":         {22, "authorization.k8s.io/v1"},
	"certificates.k8s.io/v1beta1":          {22, "certificates.k8s.io/v1"},
	"coordination.k8s.io/v1beta1":          {22, "coordination.k8s.io/v1"},
	"networking.k8s.io/v1beta1":            {22, "networking.k8s.io/v1"},
	"rbac.authorization.k8s.io/v1beta1":    {22, "rbac.authorization.k8s.io/v1"},
	"scheduling.k8s.io/v1beta1":            {22, "scheduling.k8s.io/v1"},
	"autoscaling/v2beta1":                  {25, "autoscaling/v2"},
	"batch/v1beta1":                        {25, "batch/v1"},
	"discovery.k8s.io/v1beta1":             {25, "discovery.k8s.io/v1"},
	"events.k8s.io/v1beta1":                {25, "events.k8s.io/v1"},
	"node.k8s.io/v1beta1":                  {25, "node.k8s.io/v1"},
	"policy/v1beta1":                       {25, "policy/v1"},
	"autoscaling/v2beta2":                  {26, "autoscaling/v2"},
	"flowcontrol.apiserver.k8s.io/v1beta1": {26, "flowcontrol.apiserver.k8s.io/v1"},
	"storage.k8s.io/v1beta1":               {27, "storage.k8s.io/v1"},
	"flowcontrol.apiserver.k8s.io/v1beta2": {29, "flowcontrol.apiserver.k8s.io/v1"},
	"flowcontrol.apiserver.k8s.io/v1beta3": {32, "flowcontrol.apiserver.k8s.io/v1"},
}

// unmatched matches the error of a client that found out by discovery that no version of the API
// server has a kind.
var unmatched = regexp.MustCompile(`no matches for kind "([A-Za-z]+)" in version "([a-z0-9./]+)"`)

// removedAPIs finds requests for versions of built-in kinds that Kubernetes no longer serves. A
// controller that then uses another version of the group is right.
func removedAPIs(inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	var findings []Finding
	seen := map[string]bool{}
	in := inputs[0]
	for _, asked := range unservedVersions(in.run) {
		gone, known := removals[asked.version]
		if !known || seen[asked.what+asked.version] || usesAnother(in.run, asked) {
			continue
		}
		seen[asked.what+asked.version] = true
		f := in.finding(APIRemoved, asked.step, fmt.Sprintf("the controller asks for %s in %s, which Kubernetes has not served since 1.%d; use %s",
			asked.what, asked.version, gone.minor, gone.replacement), []state.Difference{{Object: asked.what + " " + asked.version}})
		f.ID = Finding{Verdict: APIRemoved}.identity(asked.what + " " + asked.version) // the same in all scenarios
		findings = append(findings, f)
	}
	return findings
}

// unservedVersion is a kind or a resource that the controller asked for in vain.
type unservedVersion struct{ what, version, step string }

func unservedVersions(run *evidence.Run) (all []unservedVersion) {
	step := ""
	var texts []string
	for i := range run.Entries {
		e := &run.Entries[i]
		if e.Step != nil {
			step = e.Step.Name
		}
		if e.Process != nil {
			texts = append(texts, e.Process.Output)
		}
		if e.Call == nil || e.Instance == "" || e.Call.Injected || e.Call.Endpoint != "" || e.Call.Code != http.StatusNotFound || e.Call.Target.Resource == "" {
			continue
		}
		// For an object that does not exist, the message names the object instead.
		if strings.Contains(e.Call.Message, "could not find the requested resource") || e.Call.Verb == "list" || e.Call.Verb == "watch" {
			all = append(all, unservedVersion{e.Call.Target.Resource, groupVersion(e.Call.Target.Group, e.Call.Target.Version), step})
		}
	}
	for _, text := range append(texts, run.Logs) {
		// A logger escapes the quotes.
		for _, found := range unmatched.FindAllStringSubmatch(strings.ReplaceAll(text, `\"`, `"`), -1) {
			all = append(all, unservedVersion{found[1], found[2], ""})
		}
	}
	return all
}

func groupVersion(group, version string) string {
	return strings.TrimPrefix(group+"/"+version, "/")
}

// usesAnother reports whether the controller successfully used another version of what it asked for,
// which is a kind or a resource.
func usesAnother(run *evidence.Run, asked unservedVersion) bool {
	group, _, _ := strings.Cut(asked.version, "/")
	stem := strings.TrimSuffix(strings.ToLower(asked.what), "y") // networkpolicy, networkpolicies
	for i := range run.Entries {
		c := run.Entries[i].Call
		if c != nil && run.Entries[i].Instance != "" && c.Target.Group == group && strings.HasPrefix(c.Target.Resource, stem) && c.Code < http.StatusBadRequest {
			return true
		}
	}
	return false
}
