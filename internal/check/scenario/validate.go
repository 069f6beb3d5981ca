package scenario

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"

	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Validate checks a scenario that was not read by Parse, and returns all problems.
func (s *Scenario) Validate() error {
	names := make([]string, len(s.Steps))
	for i := range s.Steps {
		names[i] = s.Steps[i].Name
	}
	return join(place(s.complaints(), "", nil, names))
}

// checker collects the mistakes in a scenario.
type checker struct {
	found     []strictyaml.Complaint
	endpoints []string
}

func (c *checker) complain(path, format string, args ...any) {
	c.found = append(c.found, strictyaml.Complaint{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (s *Scenario) complaints() []strictyaml.Complaint {
	c := &checker{}
	if s.APIVersion != APIVersion || s.Kind != Kind {
		c.complain("apiVersion", "must be %s, and kind %s", APIVersion, Kind)
	}
	for _, wrong := range validation.IsDNS1123Label(s.Name) {
		c.complain("name", "%q is not a DNS label: %s", s.Name, wrong)
	}
	for i, e := range s.Endpoints {
		c.endpoint(fmt.Sprintf("endpoints[%d]", i), e, s.Endpoints[:i])
		c.endpoints = append(c.endpoints, e.Name)
	}
	for i, p := range s.Pods {
		c.pods(fmt.Sprintf("pods[%d]", i), p)
	}
	for i, m := range s.Given {
		c.manifest(fmt.Sprintf("given[%d]", i), m)
	}
	if len(s.Steps) == 0 {
		c.complain("steps", "is empty; a scenario needs at least one step")
	}
	var earlier []string
	for i, step := range s.Steps {
		at := fmt.Sprintf("steps[%d]", i)
		c.stepName(at+".name", step.Name, earlier)
		c.step(at, &step, earlier)
		earlier = append(earlier, step.Name)
	}
	for i, a := range s.Always {
		c.always(fmt.Sprintf("always[%d]", i), a, s.Always[:i])
	}
	if s.Ledger != nil {
		c.command("ledger", s.Ledger)
	}
	for i, field := range s.Ignore {
		if _, _, _, ok := state.SplitIgnore(field); !ok {
			c.complain(fmt.Sprintf("ignore[%d]", i), "%q %s", field, IgnoreForm)
		}
	}
	return c.found
}

// IgnoreForm describes the form of a line in an ignore list; in an error, it follows the line
// itself.
const IgnoreForm = `must be a kind and a path, such as "Widget.example.com status.lastSeen", or a kind, an object and a path, such as "Widget.example.com default/a status.lastSeen"`

var stepNamePattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

func (c *checker) stepName(path, name string, earlier []string) {
	if !stepNamePattern.MatchString(name) {
		c.complain(path, "%q must be 1 to 63 letters and digits, with - _ . allowed only between them", name)
	}
	if slices.Contains(earlier, name) {
		c.complain(path, "%s is already the name of an earlier step", name)
	}
}

// actions returns the names of the actions of the step.
func (st *Step) actions() []string {
	var all []string
	for _, action := range []struct {
		name string
		set  bool
	}{
		{"apply", st.Apply != nil}, {"patch", st.Patch != nil}, {"delete", st.Delete != nil},
		{"scale", st.Scale != nil}, {"run", st.Run != nil}, {"podHealth", st.PodHealth != ""},
	} {
		if action.set {
			all = append(all, action.name)
		}
	}
	return all
}

func (c *checker) step(path string, st *Step, earlier []string) {
	switch actions := st.actions(); {
	case len(actions) > 1:
		c.complain(path, "has %s; a step can have only one action, so split it into two steps", strings.Join(actions, " and "))
	case len(actions) == 0 && st.WhileDown:
		c.complain(path+".whileDown", "the step has no action to perform while the controller is down")
	case len(actions) == 0 && len(st.Wait)+len(st.Expect) == 0 && st.SameAs == "":
		c.complain(path, "does nothing; add apply, patch, delete, scale, run, podHealth, wait or expect")
	}
	if st.Apply != nil && len(st.Apply) == 0 {
		c.complain(path+".apply", "is empty")
	}
	for i, m := range st.Apply {
		c.manifest(fmt.Sprintf("%s.apply[%d]", path, i), m)
	}
	if st.Patch != nil {
		c.patch(path+".patch", st.Patch)
	}
	if st.Delete != nil {
		c.ref(path+".delete", st.Delete.ObjectRef)
		c.oneOf(path+".delete.propagation", st.Delete.Propagation, "Background", "Foreground", "Orphan")
	}
	if st.Scale != nil {
		c.ref(path+".scale", st.Scale.ObjectRef)
		if st.Scale.Replicas < 0 {
			c.complain(path+".scale.replicas", "%d is negative", st.Scale.Replicas)
		}
	}
	if st.Run != nil {
		c.command(path+".run", st.Run)
	}
	c.oneOf(path+".podHealth", st.PodHealth, healths...)
	c.suite(path, st)
	for i := range st.Wait {
		c.condition(fmt.Sprintf("%s.wait[%d]", path, i), &st.Wait[i])
	}
	for i := range st.Expect {
		c.condition(fmt.Sprintf("%s.expect[%d]", path, i), &st.Expect[i])
		if st.Expect[i].Timeout != 0 {
			c.complain(fmt.Sprintf("%s.expect[%d].timeout", path, i), "is not allowed here: an expectation is checked once, when the cluster is idle; only wait has a timeout")
		}
	}
	if st.SameAs != "" && !slices.Contains(earlier, st.SameAs) {
		c.complain(path+".sameAs", "%s: %s", st.SameAs, strictyaml.Unknown("earlier step", st.SameAs, earlier))
	}
	for i, spared := range st.Spares {
		if !slices.Contains(earlier, spared) {
			c.complain(fmt.Sprintf("%s.spares[%d]", path, i), "%s: %s", spared, strictyaml.Unknown("earlier step", spared, earlier))
		}
	}
	if len(st.Spares) > 0 && st.Apply == nil && st.Delete == nil {
		c.complain(path+".spares", "needs a step that applies or deletes an object")
	}
}

// suite complains about fields that only make sense for certain actions.
func (c *checker) suite(path string, st *Step) {
	switch {
	case st.Suite && st.Run == nil:
		c.complain(path+".suite", "needs run, with the command of the suite")
	case st.Suite && st.WhileDown:
		c.complain(path+".whileDown", "is not possible for a suite, because a suite waits for the controller")
	}
	if st.Timeout > 0 && len(st.actions()) == 0 {
		c.complain(path+".timeout", "limits an action, but the step has none; a condition in wait has its own timeout")
	}
}

// oneOf complains about a value that is set but unknown.
func (c *checker) oneOf(path, value string, known ...string) {
	if value != "" && !slices.Contains(known, value) {
		c.complain(path, "%s: %s", value, strictyaml.Unknown("value", value, known))
	}
}

func (c *checker) ref(path string, r ObjectRef) {
	if _, err := schema.ParseGroupVersion(r.APIVersion); err != nil || r.APIVersion == "" {
		c.complain(path+".apiVersion", "%q is not a group and version such as apps/v1", r.APIVersion)
	}
	if r.Kind == "" {
		c.complain(path+".kind", "is missing")
	}
	if r.Name == "" || strings.ContainsAny(r.Name, "/%") || r.Name == "." || r.Name == ".." {
		c.complain(path+".name", "%q is not a valid name of an object", r.Name)
	}
	if r.Namespace != "" && len(validation.IsDNS1123Label(r.Namespace)) > 0 {
		c.complain(path+".namespace", "%q is not a DNS label", r.Namespace)
	}
}

func (c *checker) manifest(path string, m Manifest) {
	objects, err := m.objects()
	if err != nil {
		c.complain(path+".file", "%v", err)
		return
	}
	for i, o := range objects {
		r := refOf(o)
		var missing []string
		for _, part := range [][2]string{{"apiVersion", r.APIVersion}, {"kind", r.Kind}, {"metadata.name", r.Name}} {
			if part[1] == "" {
				missing = append(missing, part[0])
			}
		}
		switch {
		case len(missing) > 0 && m.File != "":
			c.complain(path+".file", "object %d of %s has no %s", i+1, m.File, strings.Join(missing, " and no "))
		case len(missing) > 0:
			c.complain(path, "the object has no %s", strings.Join(missing, " and no "))
		default:
			c.ref(path, r)
		}
		c.references(path, o)
	}
}

func (c *checker) patch(path string, p *Patch) {
	c.ref(path, p.ObjectRef)
	c.oneOf(path+".subresource", p.Subresource, "status", "scale")
	switch {
	case (p.Merge == nil) == (p.JSON == nil):
		c.complain(path, "needs either merge or json")
	case p.Merge != nil:
		var object map[string]any
		if err := json.Unmarshal(p.Merge, &object); err != nil || object == nil {
			c.complain(path+".merge", "must be a mapping with the fields to change")
			return
		}
		c.references(path+".merge", object)
	default:
		c.operations(path+".json", p.JSON)
	}
}

// operations checks a JSON patch, RFC 6902.
func (c *checker) operations(path string, data json.RawMessage) {
	var all []struct {
		Op    string           `json:"op"`
		Path  *string          `json:"path"`
		From  *string          `json:"from"`
		Value *json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 {
		c.complain(path, "must be a list of operations with op, path and value")
		return
	}
	for i, o := range all {
		at := fmt.Sprintf("%s[%d]", path, i)
		if o.Op == "" {
			c.complain(at+".op", "is missing")
		}
		c.oneOf(at+".op", o.Op, "add", "remove", "replace", "move", "copy", "test")
		if o.Path == nil || !strings.HasPrefix(*o.Path, "/") {
			c.complain(at+".path", "must begin with a slash, such as /spec/replicas")
		}
		if (o.Op == "move" || o.Op == "copy") && o.From == nil {
			c.complain(at+".from", "is missing")
		}
	}
	var value any
	if json.Unmarshal(data, &value) == nil {
		c.references(path, value)
	}
}

func (c *checker) command(path string, command []string) {
	if len(command) == 0 || command[0] == "" {
		c.complain(path, "is empty; write a command and its arguments")
	}
	for i, part := range command {
		c.references(fmt.Sprintf("%s[%d]", path, i), part)
	}
}

func (c *checker) condition(path string, cond *Condition) {
	c.ref(path, cond.ObjectRef)
	var set []string
	if cond.Absent {
		set = append(set, "absent")
	}
	if cond.Status != "" {
		set = append(set, "status")
	}
	if cond.Field != "" {
		set = append(set, "field")
	}
	if len(set) > 1 {
		c.complain(path, "has %s; a condition can have only one of them", strings.Join(set, " and "))
	}
	if kind, value, _ := strings.Cut(cond.Status, "="); cond.Status != "" {
		if kind == "" || strings.HasSuffix(cond.Status, "=") || strings.ContainsAny(kind, " \t") {
			c.complain(path+".status", `%q must look like "Ready" or "Ready=False"`, cond.Status)
		}
		c.oneOf(path+".status", value, "True", "False", "Unknown")
	}
	if cond.Equals != nil && cond.Field == "" {
		c.complain(path+".equals", "also needs field")
	}
	if cond.Field != "" {
		if _, err := fieldPath(cond.Field); err != nil {
			c.complain(path+".field", "%v", err)
		}
	}
	var value any
	if cond.Equals != nil && json.Unmarshal(cond.Equals, &value) == nil {
		c.references(path+".equals", value)
	}
}

// fieldPath parses a JSONPath without braces. A leading $ or dot is optional.
func fieldPath(text string) (*jsonpath.JSONPath, error) {
	if strings.ContainsAny(text, "{}") {
		return nil, fmt.Errorf("%q must not contain braces; write a path such as status.readyReplicas", text)
	}
	full := strings.TrimPrefix(text, "$")
	if !strings.HasPrefix(full, ".") && !strings.HasPrefix(full, "[") {
		full = "." + full
	}
	p := jsonpath.New("field").AllowMissingKeys(true)
	if err := p.Parse("{" + full + "}"); err != nil {
		return nil, fmt.Errorf("%q is not a JSONPath: %w", text, err)
	}
	return p, nil
}

var envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c *checker) endpoint(at string, e Endpoint, earlier []Endpoint) {
	for _, wrong := range validation.IsDNS1123Label(e.Name) {
		c.complain(at+".name", "%q is not a DNS label: %s", e.Name, wrong)
	}
	if slices.ContainsFunc(earlier, func(o Endpoint) bool { return o.Name == e.Name }) {
		c.complain(at+".name", "%s is already the name of an earlier endpoint", e.Name)
	}
	if e.Run != nil && (len(e.Run) == 0 || e.Run[0] == "") {
		c.complain(at+".run", "is empty; write a command and its arguments")
	}
	port := strings.Contains(e.URL, portVariable)
	u, err := url.Parse(strings.ReplaceAll(e.URL, portVariable, "1"))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		c.complain(at+".url", "%q is not a URL such as http://127.0.0.1:%s/", e.URL, portVariable)
	case len(e.Run) > 0 && !port:
		c.complain(at+".url", "needs %s, because several instances of the server run at the same time", portVariable)
	case len(e.Run) == 0 && port:
		c.complain(at+".url", "has %s, but the endpoint has no run command that could use the port", portVariable)
	}
	if e.Env == "" {
		return
	}
	if !envPattern.MatchString(e.Env) || e.Env == "KUBECONFIG" || e.Env == "PORT" {
		c.complain(at+".env", "%q cannot be used as the name of the variable", e.Env)
	}
	if slices.ContainsFunc(earlier, func(o Endpoint) bool { return o.Env == e.Env }) {
		c.complain(at+".env", "%s is already the variable for an earlier endpoint", e.Env)
	}
}

// references complains if a value names an endpoint that does not exist.
func (c *checker) references(path string, value any) {
	eachString(value, func(text string) {
		for _, found := range endpointVariable.FindAllStringSubmatch(text, -1) {
			if name := found[1]; !slices.Contains(c.endpoints, name) {
				c.complain(path, "%s: %s", found[0], strictyaml.Unknown("endpoint", name, c.endpoints))
			}
		}
	})
}
