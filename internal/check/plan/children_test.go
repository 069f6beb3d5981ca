package plan

import (
	"strings"
	"testing"
)

func TestWhatIsChangedIsWhatTheControllerSaid(t *testing.T) {
	type object = map[string]any
	for name, c := range map[string]struct {
		said, has any
		path      string
		known     bool
	}{
		"a scalar":               {"a", "a", "", true},
		"all that is there":      {object{"k.x/y": "v", "l": "w"}, object{"k.x/y": "v", "l": "w"}, "", true},
		"one beside a default":   {object{"type": "Recreate"}, object{"type": "Recreate", "rest": "d"}, "type", true},
		"below defaults":         {object{"spec": object{"grace": int64(5)}}, object{"spec": object{"grace": int64(5), "name": "d"}}, "spec.grace", true},
		"labels come last":       {object{"metadata": object{"labels": object{"a": "b"}}, "spec": object{"grace": int64(5)}}, object{"metadata": object{"labels": object{"a": "b"}}, "spec": object{"grace": int64(5), "name": "d"}}, "spec.grace", true},
		"labels if nothing else": {object{"metadata": object{"labels": object{"a": "b"}}, "spec": object{"list": []any{"c"}}}, object{"metadata": object{"labels": object{"a": "b"}}, "spec": object{"list": []any{"c"}, "name": "d"}}, "metadata.labels", true},
		"only a list":            {object{"spec": object{"list": []any{"c"}}}, object{"spec": object{"list": []any{"c"}, "name": "d"}}, "", false},
		"what is secret":         {"hmac:00", "hmac:00", "", false},
	} {
		path, known := within(c.said, c.has)
		if got := strings.Join(path, "."); got != c.path || known != c.known {
			t.Errorf("%s: %q, %t, want %q, %t", name, got, known, c.path, c.known)
		}
	}
}
