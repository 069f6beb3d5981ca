package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// environments holds the variables of the expressions of a kind. Kubernetes declares the
// authorizer for rules, but not for messages.
type environments struct {
	rule, message *cel.Env
	err           error
}

// environment returns the environments of a rule's kind.
func (m *maker) environment(rule Marked) *environments {
	key := rule.CRD.Name + "/" + rule.Version
	if e, ok := m.environments[key]; ok {
		return e
	}
	e := &environments{}
	m.environments[key] = e
	var object *apiservercel.DeclType
	if object, e.err = objectType(rule.CRD, rule.Version); e.err != nil {
		return e
	}
	if e.message, e.err = newEnvironment(object); e.err != nil {
		return e
	}
	e.rule, e.err = newEnvironment(object,
		cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
		cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	return e
}

// newEnvironment returns the environment in which the API server compiles new expressions of
// policies, except that the object has a type. The API server also checks the types, but reports
// mistakes only in the status of the policy.
func newEnvironment(object *apiservercel.DeclType, more ...cel.EnvOption) (*cel.Env, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	types := []*apiservercel.DeclType{request, namespace}
	if object.IsObject() {
		types = append(types, object)
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		DeclTypes:         types,
		EnvOptions: append([]cel.EnvOption{
			cel.Variable(plugincel.ObjectVarName, object.CelType()),
			cel.Variable(plugincel.OldObjectVarName, object.CelType()),
			cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
			cel.Variable(plugincel.RequestVarName, request.CelType()),
		}, more...),
	})
	if err != nil {
		return nil, err
	}
	return set.NewExpressionsEnv(), nil
}

// check returns what is wrong with the expressions of a rule.
func (e *environments) check(rule Rule) (wrong []string) {
	if e.err != nil {
		return []string{e.err.Error()}
	}
	if text := compile(e.rule, rule.Expression, cel.BoolType); text != "" {
		wrong = append(wrong, "expression: "+text)
	}
	if rule.MessageExpression == "" {
		return wrong
	}
	if text := compile(e.message, rule.MessageExpression, cel.StringType); text != "" {
		wrong = append(wrong, "messageExpression: "+text)
	}
	return wrong
}

// compile returns what is wrong with an expression.
func compile(env *cel.Env, expression string, want *cel.Type) string {
	if strings.TrimSpace(expression) == "" {
		return "the expression is empty; write one"
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		first := issues.Errors()[0] // the others often follow from the first
		return fmt.Sprintf("%s at %q", first.Message, rest(expression, first.Location.Line(), first.Location.Column()))
	}
	if !ast.OutputType().IsExactType(want) {
		return fmt.Sprintf("must return %s, but returns %s", want, ast.OutputType())
	}
	if _, err := env.Program(ast); err != nil {
		return err.Error()
	}
	return ""
}

// rest returns the beginning of the text after a position in an expression.
func rest(expression string, line, column int) string {
	const most = 20
	lines := strings.Split(expression, "\n")
	if line < 1 || line > len(lines) {
		return expression
	}
	text := []rune(lines[line-1])
	text = text[min(max(column, 0), len(text)):]
	return string(text[:min(most, len(text))])
}

// objectType returns the type of the objects of a version.
func objectType(crd *apiextensionsv1.CustomResourceDefinition, version string) (*apiservercel.DeclType, error) {
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if at < 0 || crd.Spec.Versions[at].Schema == nil {
		return nil, fmt.Errorf("the CRD %s has no schema for version %s", crd.Name, version)
	}
	data, err := json.Marshal(crd.Spec.Versions[at].Schema.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	schema := &spec.Schema{}
	if err := json.Unmarshal(data, schema); err != nil {
		return nil, err
	}
	loosened := loosen(*schema)
	return openapi.SchemaDeclType(&loosened, false).MaybeAssignTypeName(crd.Spec.Names.Kind), nil
}

// The extensions of a schema that matter here.
const (
	intOrString     = "x-kubernetes-int-or-string"
	preserveUnknown = "x-kubernetes-preserve-unknown-fields"
	embedded        = "x-kubernetes-embedded-resource"
)

// loosen makes two kinds of parts of a schema dynamic: those whose fields the schema does not list,
// such as metadata, and those in which the type would give a field another name. It removes the
// formats, because a policy, unlike a rule of a CRD, sees a date as a string.
func loosen(s spec.Schema) spec.Schema {
	if dynamic(s) {
		return spec.Schema{VendorExtensible: spec.VendorExtensible{Extensions: spec.Extensions{intOrString: true}}}
	}
	s.Format = ""
	for name, property := range s.Properties {
		s.Properties[name] = loosen(property)
	}
	if s.Items != nil {
		items := loosen(*s.Items.Schema)
		s.Items.Schema = &items
	}
	if s.AdditionalProperties != nil {
		values := loosen(*s.AdditionalProperties.Schema)
		s.AdditionalProperties.Schema = &values
	}
	return s
}

func dynamic(s spec.Schema) bool {
	for _, extension := range []string{intOrString, preserveUnknown, embedded} {
		if is, _ := s.Extensions.GetBool(extension); is {
			return true
		}
	}
	switch {
	case len(s.Type) != 1:
		return true
	case s.Type[0] == "array":
		return s.Items == nil || s.Items.Schema == nil
	case s.Type[0] != "object":
		return false
	case len(s.Properties) == 0:
		return s.AdditionalProperties == nil || s.AdditionalProperties.Schema == nil
	}
	for name := range s.Properties {
		if escaped, ok := apiservercel.Escape(name); !ok || escaped != name {
			return true
		}
	}
	return false
}
