// Package missing names what a controller asked for and did not find in its cluster: kinds of
// other projects, Secrets, ConfigMaps, and programs in Pods.
package missing

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Find returns one sentence for each thing that the controller did not find in a run. Each
// sentence names the flag that supplies the thing.
func Find(run *evidence.Run) []string {
	kinds, objects := map[string]bool{}, map[trace.Target]bool{}
	there := map[trace.Target]bool{}
	for _, e := range run.Entries {
		if e.Call == nil || e.Instance == "" || e.Call.Injected || e.Call.Endpoint != "" {
			continue
		}
		if kind := unserved(e.Call); kind != "" {
			kinds[kind] = true
		}
		object, found := configuration(e.Call)
		if found {
			there[object] = true
		} else if object.Name != "" {
			objects[object] = true
		}
	}
	for _, kind := range unmatched(run) {
		kinds[kind] = true
	}
	var hints []string
	if how := inPods(run); how != "" {
		hints = append(hints, how)
	}
	for kind := range kinds {
		hints = append(hints, ofKind(kind))
	}
	for object := range objects {
		if !there[object] {
			hints = append(hints, ofObject(object))
		}
	}
	slices.Sort(hints)
	return hints
}

// inPods describes how the controller tried to reach a Pod. The Pods of a plane are simulated.
func inPods(run *evidence.Run) string {
	for _, e := range run.Entries {
		if e.Call == nil || e.Instance == "" || e.Call.Injected || e.Call.Code < http.StatusBadRequest || e.Call.Target.Resource != "pods" {
			continue
		}
		switch sub := e.Call.Target.Subresource; sub {
		case "exec", "attach", "portforward", "proxy":
			return fmt.Sprintf("the controller uses pods/%s, which fails because the Pods of a check are simulated, so its work after that is not checked (define answers in koboshi.yaml or in a scenario, under pods)", sub)
		}
	}
	return ""
}

// Explain adds to the error of a run what the controller did not find, because this is often
// the reason for the error.
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

// notServed is the message of an API server for a resource that it does not serve. Its
// message for an object that does not exist names the object.
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

// configuration returns the Secret or ConfigMap of a request. It reports whether the object
// was there, or the controller made it.
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
