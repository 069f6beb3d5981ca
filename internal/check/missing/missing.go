// Package missing describes what a controller requested but did not find in its cluster: kinds of
// other projects, Secrets, ConfigMaps, and programs in Pods.
package missing

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Find returns one sentence for each kind, object or program that the controller did not find in
// the runs of a scenario. Each sentence names the flag that supplies what is missing. Find does not
// report objects that the controller itself makes, or is told to make.
func Find(runs ...*evidence.Run) []string {
	hints := map[string]bool{}
	var own []string
	for _, run := range runs {
		for _, hint := range inRun(run) {
			hints[hint] = true
		}
		own = append(own, Own(run)...)
	}
	for _, hint := range own {
		delete(hints, hint)
	}
	return slices.Sorted(maps.Keys(hints))
}

// Own returns the hints that must be dropped for all scenarios, because the controller itself makes
// the objects that the hints name in this run.
func Own(run *evidence.Run) (hints []string) {
	for object, found := range configurations(run) {
		if found || isOutput(run, object.Name) {
			hints = append(hints, ofObject(object))
		}
	}
	slices.Sort(hints)
	return hints
}

func inRun(run *evidence.Run) (hints []string) {
	for _, e := range run.Entries {
		if !isAsked(e) {
			continue
		}
		if kind := unserved(e.Call); kind != "" {
			hints = append(hints, ofKind(kind))
		}
	}
	for _, kind := range unmatched(run) {
		hints = append(hints, ofKind(kind))
	}
	if how := inPods(run); how != "" {
		hints = append(hints, how)
	}
	for object, found := range configurations(run) {
		if !found {
			hints = append(hints, ofObject(object))
		}
	}
	return hints
}

// isAsked reports whether an entry is a request of the controller that the API server answered.
func isAsked(e trace.Entry) bool {
	return e.Call != nil && e.Instance != "" && !e.Call.Injected && e.Call.Endpoint == ""
}

// configurations returns the Secrets and ConfigMaps that the controller requested or wrote, and
// whether each of them existed at some time.
func configurations(run *evidence.Run) map[trace.Target]bool {
	all := map[trace.Target]bool{}
	for _, e := range run.Entries {
		if !isAsked(e) {
			continue
		}
		if object, found := configuration(e.Call); object.Name != "" {
			all[object] = all[object] || found
		}
	}
	return all
}

// output matches the names of fields in which a resource names the objects that its controller must
// create.
var output = regexp.MustCompile(`(?i)target|destination|output|write`)

// isOutput reports whether a resource in the cluster names the object as an output.
func isOutput(run *evidence.Run, name string) bool {
	for _, c := range run.History.Changes {
		if spec, ok := c.After["spec"].(map[string]any); ok && strings.Contains(c.Ref.Group, ".") && names(spec, name, false) {
			return true
		}
	}
	return false
}

// names reports whether a field below a key that output matches has the name as its value.
func names(v any, name string, below bool) bool {
	switch typed := v.(type) {
	case map[string]any:
		for key, item := range typed {
			if names(item, name, below || output.MatchString(key)) {
				return true
			}
		}
	case []any:
		for _, item := range typed {
			if names(item, name, below) {
				return true
			}
		}
	case string:
		return below && typed == name
	}
	return false
}

// inPods describes a failed attempt of the controller to reach a Pod, or returns "". The Pods of a
// plane are simulated.
func inPods(run *evidence.Run) string {
	for _, e := range run.Entries {
		if e.Call == nil || e.Instance == "" || e.Call.Injected || e.Call.Code < http.StatusBadRequest || e.Call.Target.Resource != "pods" {
			continue
		}
		switch sub := e.Call.Target.Subresource; sub {
		case "exec", "attach", "portforward", "proxy":
			return fmt.Sprintf("the controller uses pods/%s, which fails because the Pods of a check are simulated, so its work after that is not checked (define answers in koboshi.yaml or in a scenario, under pods, or let the Pods run a program with --run)", sub)
		}
	}
	return ""
}

// Explain adds the sentences of Find to the error of a run, because a missing object or kind is
// often the cause of the error.
func Explain(run *evidence.Run, err error) (*evidence.Run, error) {
	if err == nil || run == nil {
		return run, err
	}
	if hints := Find(run); len(hints) > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(hints, "; "))
	}
	return run, err
}

// discovery matches the path with which a client asks which kinds of a group exist.
var discovery = regexp.MustCompile(`^/apis/([^/?]+)(?:/[^/?]+)?/?(?:\?.*)?$`)

// notServed is the message of an API server for a resource that it does not serve. For an object
// that does not exist, the API server's message names the object instead.
const notServed = "the server could not find the requested resource"

// unserved returns the resource and the group, or only the group, if the request failed
// because the API server does not serve them.
func unserved(c *trace.Call) string {
	if c.Code != http.StatusNotFound {
		return ""
	}
	if c.Target.Resource != "" {
		collection := c.Verb == "list" || c.Verb == "watch"
		if ofOther(c.Target.Group) && (collection || strings.Contains(c.Message, notServed)) {
			return c.Target.Resource + "." + c.Target.Group
		}
		return ""
	}
	if group := discovery.FindStringSubmatch(c.Path); group != nil && ofOther(group[1]) {
		return group[1]
	}
	return ""
}

// ofOther reports whether a group does not belong to Kubernetes.
func ofOther(group string) bool {
	return strings.Contains(group, ".") && !scheme.Scheme.IsGroupRegistered(group)
}

// noMatch matches the error of a client that found out by discovery that a kind does not
// exist.
var noMatch = regexp.MustCompile(`no matches for (?:kind "([A-Za-z]+)" in (?:version|group) "([a-z0-9.-]+)(?:/[a-z0-9]+)?"|([a-z0-9.-]+)/[a-z0-9]+, Resource=([a-z]+))`)

// unmatched returns the kinds that the controller's output names as missing.
func unmatched(run *evidence.Run) (kinds []string) {
	texts := []string{run.Logs}
	for _, e := range run.Entries {
		if e.Process != nil {
			texts = append(texts, e.Process.Output)
		}
	}
	for _, text := range texts {
		// A logger escapes the quotes.
		for _, found := range noMatch.FindAllStringSubmatch(strings.ReplaceAll(text, `\"`, `"`), -1) {
			kind, group := cmp.Or(found[1], found[4]), cmp.Or(found[2], found[3])
			if ofOther(group) {
				kinds = append(kinds, kind+"."+group)
			}
		}
	}
	return kinds
}

// configuration returns the Secret or ConfigMap of a request. It also reports whether the object
// existed or the controller made it.
func configuration(c *trace.Call) (object trace.Target, found bool) {
	if c.Target.Group != "" || c.Target.Name == "" || c.Target.Subresource != "" || !slices.Contains([]string{"secrets", "configmaps"}, c.Target.Resource) {
		return trace.Target{}, false
	}
	object = trace.Target{Resource: c.Target.Resource, Namespace: c.Target.Namespace, Name: c.Target.Name}
	switch {
	case c.Code == http.StatusNotFound && c.Verb == "get":
		return object, false
	case c.Code < 300 || c.Verb != "get":
		return object, true
	}
	return trace.Target{}, false
}

// ofKind returns the sentence about a kind or a group that is not served.
func ofKind(kind string) string {
	ships := ""
	if name := project(kind); name != "" {
		ships = "; it belongs to " + name
	}
	return fmt.Sprintf("the controller asked for %s, which the cluster does not serve%s (use --with-crds FILE to add its CRDs)", kind, ships)
}

func ofObject(o trace.Target) string {
	kind, stub := "Secret", "--stub-secret"
	if o.Resource == "configmaps" {
		kind, stub = "ConfigMap", "--stub-configmap"
	}
	name := o.Namespace + "/" + o.Name
	return fmt.Sprintf("the controller asked for the %s %s, which does not exist (use --given FILE to add it, or %s %s=KEY,... to make one up)", kind, name, stub, name)
}
