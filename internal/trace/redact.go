package trace

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
)

const redactedPrefix = "redacted:sha256:"

// The key prevents anyone from guessing values from their digests. Each process has a
// different key.
var redactionKey atomic.Pointer[[]byte]

// UseKey makes this process redact with the key of another process, so that values from
// both can be compared. UseKey must be called before anything is redacted.
func UseKey(key []byte) {
	k := append([]byte(nil), key...)
	redactionKey.Store(&k)
}

// Key returns the key for UseKey in another process. The key must never be stored.
func Key() []byte {
	if k := redactionKey.Load(); k != nil {
		return *k
	}
	k := make([]byte, sha256.Size)
	rand.Read(k)
	redactionKey.CompareAndSwap(nil, &k)
	return *redactionKey.Load()
}

// noticed receives secret values.
var noticed atomic.Pointer[func(value string)]

// NoticeSecrets makes this process call the function do with each secret value that it redacts, so
// that the value can also be removed from texts in which it is not marked. NoticeSecrets must be
// called before anything is redacted.
func NoticeSecrets(do func(value string)) { noticed.Store(&do) }

func notice(value string) {
	if do := noticed.Load(); do != nil {
		(*do)(value)
	}
}

// Redact replaces in place the secrets in an API object: tokens and the values of Secrets,
// including those in lists and in other objects. Equal secrets are replaced by equal
// digests, so changes remain visible, but the secrets cannot be recovered.
func Redact(obj map[string]any) { redact(obj, false) }

// secret reports whether everything about the target is secret.
func (t Target) secret() bool { return t.Group == "" && t.Resource == "secrets" }

func redactAs(t Target, v any) any {
	obj, isObject := v.(map[string]any)
	if !t.secret() {
		return redact(v, false)
	}
	if isObject && obj["kind"] == "Status" {
		return redactStatus(t, obj)
	}
	if patch, isPatch := v.([]any); isPatch {
		redactPatch(patch)
	}
	return redact(v, true)
}

// redactPatch replaces all values in a JSON patch of a Secret.
func redactPatch(patch []any) {
	for _, op := range patch {
		if op, ok := op.(map[string]any); ok {
			path, _ := op["path"].(string)
			replace(op, "value", strings.HasPrefix(path, "/data"))
		}
	}
}

// redact walks v. If v is secret, every map in it may be a Secret or a patch of a Secret,
// whatever its kind.
func redact(v any, secret bool) any {
	switch v := v.(type) {
	case map[string]any:
		kind, _ := v["kind"].(string)
		switch {
		case secret, kind == "Secret", kind == "SecretList":
			secret = true
			redactSecret(v)
		case strings.HasPrefix(kind, "Token"):
			for _, part := range []string{"spec", "status"} {
				if part, ok := v[part].(map[string]any); ok {
					replace(part, "token", false)
				}
			}
		}
		for k, x := range v {
			v[k] = redact(x, secret)
		}
	case []any:
		for i, x := range v {
			v[i] = redact(x, secret)
		}
	case string:
		if strings.Contains(v, "Secret") && embeddedSecret.MatchString(v) {
			return digest([]byte(v))
		}
	}
	return v
}

// embeddedSecret matches a Secret in a string, such as a last-applied configuration or a
// bundle of manifests.
var embeddedSecret = regexp.MustCompile(`\bkind\\*"?\s*:\s*\\*["']?Secret(List)?\b`)

func redactSecret(v map[string]any) {
	for _, field := range []string{"data", "stringData", "binaryData"} {
		replace(v, field, field != "stringData")
	}
	meta, _ := v["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for k, x := range annotations {
		// Tools keep copies of applied objects in these annotations, often compressed.
		text, _ := x.(string)
		if strings.Contains(k, "applied") || strings.Contains(k, "original") || strings.HasPrefix(text, "{") {
			replace(annotations, k, false)
		}
	}
}

// redactStatus redacts an error about a Secret: it removes everything that may quote the Secret.
func redactStatus(t Target, status map[string]any) map[string]any {
	reason, _ := status["reason"].(string)
	message, _ := status["message"].(string)
	if kept := redactMessage(t, reason, message); kept != message {
		status["message"] = kept
		delete(status, "details")
	}
	return status
}

// redactMessage redacts messages about Secrets, because a message about a patch that
// cannot be applied quotes the entire object.
func redactMessage(t Target, reason, message string) string {
	if !t.secret() || message == "" {
		return message
	}
	switch reason {
	case "NotFound", "AlreadyExists", "Conflict", "Forbidden", "Unauthorized", "Expired", "Gone",
		"TooManyRequests", "ServerTimeout", "Timeout", "ServiceUnavailable", "MethodNotAllowed":
		return message
	}
	return digest([]byte(message))
}

// replace replaces all values in m[key], at any depth, with digests.
func replace(m map[string]any, key string, isBase64 bool) {
	if v, ok := m[key]; ok {
		m[key] = digests(v, isBase64)
	}
}

func digests(v any, isBase64 bool) any {
	switch v := v.(type) {
	case nil:
		return nil // null removes a key in a patch
	case map[string]any:
		for k, x := range v {
			v[k] = digests(x, isBase64)
		}
		return v
	case []any:
		for i, x := range v {
			v[i] = digests(x, isBase64)
		}
		return v
	case string:
		if redacted.MatchString(v) {
			return v
		}
		// The value is decoded first, so that stringData and the data made from it have
		// the same digest.
		plain := []byte(v)
		if decoded, err := base64.StdEncoding.DecodeString(v); isBase64 && err == nil {
			plain = decoded
		}
		notice(string(plain))
		return digest(plain)
	default:
		return digest([]byte(fmt.Sprint(v)))
	}
}

var redacted = regexp.MustCompile("^" + redactedPrefix + "[0-9a-f]{8}$")

// IsRedacted reports whether the text is the digest of a secret value.
func IsRedacted(text string) bool { return redacted.MatchString(text) }

func digest(value []byte) string {
	mac := hmac.New(sha256.New, Key())
	mac.Write(value)
	return redactedPrefix + hex.EncodeToString(mac.Sum(nil)[:4])
}
