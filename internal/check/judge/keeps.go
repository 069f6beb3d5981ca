package judge

import (
	"regexp"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

var (
	// keeping matches the values of policies that keep objects, in the form that bare returns.
	keeping = regexp.MustCompile(`^(retain|retained|orphan|keep|donotdelete|nodelete|skipdelete|preserve|abandon|detach|leave|none)$`)
	// not is a pattern for values, such as never, that keep objects if their key is about deletion.
	not = regexp.MustCompile(`^(never|no|false|off|disabled|manual|ignore|noop|donothing|nothing|snapshot|archive)$`)
	// keepKey and deleteKey match the keys of switches.
	keepKey   = regexp.MustCompile(`(retain|orphan|keep|preserve|abandon|skipdelet|skipcleanup|donotdelet|nodelet|protect)`)
	deleteKey = regexp.MustCompile(`(delet|reclaim|prun|cleanup|purge|cascad|destroy|garbage|remov|finaliz|teardown)`)
)

// keeps reports whether a policy in the resource requests that objects be kept. The patterns
// contain words from Kubernetes' own policies, and from common operators and package managers.
func keeps(object state.Object) bool {
	spec, _ := object["spec"].(map[string]any)
	return saysKeep("", spec) || saysKeep("", object.Annotations())
}

func saysKeep(key string, v any) bool {
	switch typed := v.(type) {
	case map[string]any:
		for key, item := range typed {
			if saysKeep(bare(key), item) {
				return true
			}
		}
	case []any:
		for _, item := range typed {
			if saysKeep(key, item) {
				return true
			}
		}
	case bool:
		return typed && keepKey.MatchString(key) || !typed && deleteKey.MatchString(key) && !keepKey.MatchString(key)
	case string:
		value := bare(typed)
		return keeping.MatchString(value) || not.MatchString(value) && deleteKey.MatchString(key) && !keepKey.MatchString(key) ||
			value == "true" && keepKey.MatchString(key)
	}
	return false
}

// bare returns a word in lower case, without dashes, underscores and spaces.
func bare(text string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(text))
}
