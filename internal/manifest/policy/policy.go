// Package policy makes ValidatingAdmissionPolicies from markers on kinds, and compiles their
// expressions as the API server does.
package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// Marker is the name of the marker.
const Marker = "koboshi:policy"

// A Rule is the value of one marker, and becomes one validation of a policy.
type Rule struct {
	// Name is the name of the policy. Rules of a kind that have the same name form one policy.
	Name string
	// Expression is the CEL expression that is true for requests that are allowed.
	Expression string
	// Message is the text that the client gets if the request is refused.
	Message string `marker:",optional"`
	// MessageExpression is a CEL expression that returns the message.
	MessageExpression string `marker:",optional"`
	// Reason is the reason in the status that the client gets; the default is Invalid.
	Reason string `marker:",optional"`
	// Operations lists create, update and delete; the default is create and update.
	Operations []string `marker:",optional"`
	// FailurePolicy decides on requests for which an expression fails; the default is Fail.
	FailurePolicy string `marker:",optional"`
	// Actions lists Deny, Warn and Audit; the default is Deny.
	Actions []string `marker:",optional"`
}

// Register adds the marker to a registry.
func Register(into *markers.Registry) error {
	definition, err := markers.MakeDefinition(Marker, markers.DescribesType, Rule{})
	if err != nil {
		return err
	}
	return into.Register(definition)
}

// A Marked is a rule and the kind on which its marker stands.
type Marked struct {
	Rule

	// CRD is the CRD of the kind, and Version is the version whose Go type has the marker.
	CRD     *apiextensionsv1.CustomResourceDefinition
	Version string
}

// A Mistake describes an error in a rule.
type Mistake struct {
	Rule    int // the index
	Message string
}

// Make returns a policy and a binding for each name in the rules, in alphabetical order. If there
// are mistakes, the policies must not be used.
func Make(rules []Marked) (objects []any, mistakes []Mistake) {
	m := &maker{policies: map[string]*named{}, environments: map[string]*environments{}}
	for i, rule := range rules {
		for _, message := range m.add(rule) {
			mistakes = append(mistakes, Mistake{i, message})
		}
	}
	for _, p := range m.inOrder() {
		objects = append(objects, &p.policy, &p.binding)
	}
	return objects, mistakes
}

// A named is a policy with its binding.
type named struct {
	first   Marked
	policy  admissionv1.ValidatingAdmissionPolicy
	binding admissionv1.ValidatingAdmissionPolicyBinding
}

type maker struct {
	policies     map[string]*named
	environments map[string]*environments // by kind and version
}

func (m *maker) inOrder() (all []*named) {
	for _, p := range m.policies {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *named) int { return cmp.Compare(a.policy.Name, b.policy.Name) })
	return all
}

// The values that Kubernetes accepts. Kubernetes refuses the reason Unauthorized, although its
// documentation of the field lists this reason. The operation CONNECT is missing, because no client
// can connect to a custom resource.
var (
	operations      = []string{"CREATE", "UPDATE", "DELETE"}
	failurePolicies = []string{string(admissionv1.Fail), string(admissionv1.Ignore)}
	actions         = []string{string(admissionv1.Deny), string(admissionv1.Warn), string(admissionv1.Audit)}
	reasons         = []string{
		string(metav1.StatusReasonForbidden), string(metav1.StatusReasonInvalid), string(metav1.StatusReasonRequestEntityTooLarge),
	}
)

// add adds a rule to its policy, and returns what is wrong with it.
func (m *maker) add(rule Marked) (wrong []string) {
	rule, wrong = normalized(rule)
	wrong = append(wrong, m.environment(rule).check(rule.Rule)...)
	p, ok := m.policies[rule.Name]
	switch {
	case !ok:
		p = start(rule)
		m.policies[rule.Name] = p
	case p.first.CRD.Name != rule.CRD.Name:
		wrong = append(wrong, fmt.Sprintf("the name of the policy, %s, is already used for %s; choose another name", rule.Name, p.first.CRD.Spec.Names.Kind))
	case p.first.Version != rule.Version:
		wrong = append(wrong, fmt.Sprintf("the policy %s is already on version %s, to which the API server converts the objects of other versions; "+
			"remove the marker from one of them", rule.Name, p.first.Version))
	default:
		wrong = append(wrong, p.join(rule)...)
	}
	p.policy.Spec.Validations = append(p.policy.Spec.Validations, rule.validation())
	return wrong
}

// normalized returns the rule with Kubernetes' spelling of the values, and what is wrong with
// them.
func normalized(rule Marked) (_ Marked, wrong []string) {
	check := func(argument string, values []string, allowed []string) []string {
		out := slices.Clone(values)
		for i, value := range values {
			at := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, value) })
			switch {
			case at < 0:
				wrong = append(wrong, fmt.Sprintf("%s cannot be %q; use %s", argument, value, strings.Join(allowed, ", ")))
			case slices.Contains(out[:i], allowed[at]):
				wrong = append(wrong, fmt.Sprintf("%s contains %s twice; remove one of them", argument, value))
			default:
				out[i] = allowed[at]
			}
		}
		return out
	}
	one := func(argument, value string, allowed []string) string {
		if value == "" {
			return ""
		}
		return check(argument, []string{value}, allowed)[0]
	}
	if problems := validation.IsDNS1123Subdomain(rule.Name); len(problems) > 0 {
		wrong = append(wrong, fmt.Sprintf("%q cannot be the name of a policy: %s", rule.Name, problems[0]))
	}
	if strings.ContainsAny(rule.Message, "\r\n") {
		wrong = append(wrong, "the message contains a line break; remove it")
	}
	rule.Operations = check("operations", rule.Operations, operations)
	rule.Actions = check("actions", rule.Actions, actions)
	rule.FailurePolicy = one("failurePolicy", rule.FailurePolicy, failurePolicies)
	rule.Reason = one("reason", rule.Reason, reasons)
	if slices.Contains(rule.Actions, string(admissionv1.Deny)) && slices.Contains(rule.Actions, string(admissionv1.Warn)) {
		wrong = append(wrong, "actions cannot contain both Deny and Warn; remove one of them")
	}
	return rule, wrong
}

// start returns the policy of a rule, without validations.
func start(rule Marked) *named {
	p := &named{first: rule}
	spec := rule.CRD.Spec
	failure, equivalent, scope := admissionv1.FailurePolicyType(cmp.Or(rule.FailurePolicy, failurePolicies[0])), admissionv1.Equivalent, scopeOf(spec)
	p.policy.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"))
	p.policy.Name = rule.Name
	p.policy.Spec.FailurePolicy = &failure
	p.policy.Spec.MatchConstraints = &admissionv1.MatchResources{
		// Requests for other versions are converted to the version of the marker.
		MatchPolicy: &equivalent,
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: listOr[admissionv1.OperationType](rule.Operations, operations[:2]),
			Rule: admissionv1.Rule{
				APIGroups: []string{spec.Group}, APIVersions: []string{rule.Version}, Resources: []string{spec.Names.Plural}, Scope: &scope,
			},
		}}},
	}
	p.binding.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"))
	p.binding.Name = rule.Name
	p.binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: rule.Name, ValidationActions: listOr[admissionv1.ValidationAction](rule.Actions, actions[:1]),
	}
	return p
}

func scopeOf(spec apiextensionsv1.CustomResourceDefinitionSpec) admissionv1.ScopeType {
	if spec.Scope == apiextensionsv1.ClusterScoped {
		return admissionv1.ClusterScope
	}
	return admissionv1.NamespacedScope
}

func listOr[T ~string](values, otherwise []string) (list []T) {
	if len(values) == 0 {
		values = otherwise
	}
	for _, value := range values {
		list = append(list, T(value))
	}
	return list
}

// join checks that a further rule of a policy does not contradict the first, which holds the
// arguments that a policy has only once.
func (p *named) join(rule Marked) (wrong []string) {
	for _, argument := range []struct {
		name        string
		first, more []string
	}{
		{"operations", p.first.Operations, rule.Operations},
		{"actions", p.first.Actions, rule.Actions},
		{"failurePolicy", []string{p.first.FailurePolicy}, []string{rule.FailurePolicy}},
	} {
		if strings.Join(argument.more, "") != "" && !slices.Equal(argument.first, argument.more) {
			wrong = append(wrong, fmt.Sprintf("%s belongs to the whole policy %s, and differs from its first marker; remove it here, or choose another name",
				argument.name, rule.Name))
		}
	}
	return wrong
}

func (r Rule) validation() admissionv1.Validation {
	v := admissionv1.Validation{Expression: r.Expression, Message: r.Message, MessageExpression: r.MessageExpression}
	if r.Reason != "" {
		reason := metav1.StatusReason(r.Reason)
		v.Reason = &reason
	}
	return v
}
