package plan

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestTheValueOfASecretIsChangedIfItIsTheSameInAllRuns(t *testing.T) {
	secret := func(fields state.Object, data map[string]any) state.Object {
		object := state.Object{"kind": "Secret", "metadata": map[string]any{"name": "a", "namespace": "default"}, "data": data}
		for key, value := range fields {
			object[key] = value
		}
		return object
	}
	run := func(object state.Object) *story {
		s := newStory("s")
		s.step(apply("create"))
		s.writes("create", "secrets", "a", object)
		s.rest()
		return s
	}
	const change = "another client changed data.user of Secret default/a at rest after step create"
	for name, tt := range map[string]struct {
		first, second state.Object
		want          []string
	}{
		"the same":   {secret(nil, map[string]any{"user": "hmac:1"}), secret(nil, map[string]any{"user": "hmac:1"}), []string{change}},
		"generated":  {secret(nil, map[string]any{"user": "hmac:1"}), secret(nil, map[string]any{"user": "hmac:2"}), nil},
		"one of two": {secret(nil, map[string]any{"password": "hmac:3", "user": "hmac:1"}), secret(nil, map[string]any{"password": "hmac:4", "user": "hmac:1"}), []string{change}},
		"immutable":  {secret(state.Object{"immutable": true}, map[string]any{"user": "hmac:1"}), secret(nil, map[string]any{"user": "hmac:1"}), nil},
		"a dot":      {secret(nil, map[string]any{"tls.key": "hmac:1"}), secret(nil, map[string]any{"tls.key": "hmac:1"}), nil},
		"absent":     {secret(nil, map[string]any{"user": "hmac:1"}), secret(nil, map[string]any{}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := run(tt.first).input()
			in.All = []*evidence.Run{in.Reference, run(tt.second).run}
			expect(t, find(Make(in), fault.EditChild), tt.want)
		})
	}
}
