// Package invariant compiles and evaluates the rules of a scenario that must hold in every revision
// of an object. The rules are written in CEL, in the environment in which the API server evaluates
// the expressions of admission policies.
package invariant

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// object and oldObject are the variables of an expression. The names are those of admission
// policies.
const (
	object    = "object"
	oldObject = "oldObject"
)

// Rule is a compiled expression.
type Rule struct {
	program cel.Program
	// compares reports whether the expression compares an object with its previous revision.
	compares bool
}

// base returns the environment of all expressions. It is made only if there are expressions, because
// that takes many milliseconds.
var base = sync.OnceValues(func() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable(object, cel.DynType), cel.Variable(oldObject, cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	return set.NewExpressionsEnv(), nil
})

var previous = regexp.MustCompile(`\b` + oldObject + `\b`)

// Compile compiles an expression, whose result must be a boolean. The error names the place of the
// mistake in the expression.
func Compile(expression string) (*Rule, error) {
	env, err := base()
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(expression) == "" {
		return nil, errors.New("is empty; write an expression in CEL, such as object.spec.replicas > 0")
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		first := issues.Errors()[0] // the others often follow from the first
		return nil, fmt.Errorf("%s, in line %d, column %d of the expression", first.Message, first.Location.Line(), first.Location.Column()+1)
	}
	if result := ast.OutputType(); !result.IsExactType(cel.BoolType) && !result.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("must be true or false, but the expression returns %s", result)
	}
	program, err := env.Program(ast)
	if err != nil {
		return nil, err
	}
	return &Rule{program: program, compares: previous.MatchString(expression)}, nil
}

// Compares reports whether the rule compares an object with its previous revision.
func (r *Rule) Compares() bool { return r.compares }

// Holds evaluates the rule for a revision of an object. old is the previous revision, or nil for the
// first. An error means that the expression cannot be evaluated for this object.
func (r *Rule) Holds(now, old map[string]any) (bool, error) {
	variables := map[string]any{object: whole(now), oldObject: nil}
	if old != nil {
		variables[oldObject] = whole(old)
	}
	result, _, err := r.program.Eval(variables)
	if err != nil {
		return false, err
	}
	holds, is := result.Value().(bool)
	if !is {
		return false, fmt.Errorf("the result is %v, which is neither true nor false", result.Value())
	}
	return holds, nil
}

// whole returns a copy of a JSON value in which numbers without a fraction are integers, as in the
// expressions of the API server.
func whole(v any) any {
	switch typed := v.(type) {
	case map[string]any:
		copied := make(map[string]any, len(typed))
		for key, item := range typed {
			copied[key] = whole(item)
		}
		return copied
	case []any:
		copied := make([]any, len(typed))
		for i, item := range typed {
			copied[i] = whole(item)
		}
		return copied
	case float64:
		if typed == math.Trunc(typed) && math.Abs(typed) < 1<<53 {
			return int64(typed)
		}
	}
	return v
}
