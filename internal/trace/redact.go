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

// The key makes a digest useless to who would try passwords, and differs from
// process to process.
var redactionKey atomic.Pointer[[]byte]

// UseKey makes this process redact as another does, so that values of both can be
// compared. It is called before anything is redacted.
func UseKey(key []byte) {
	k := append([]byte(nil), key...)
	redactionKey.Store(&k)
}

// Key is what UseKey in another process takes. It must not be written anywhere.
func Key() []byte {
	if k := redactionKey.Load(); k != nil {
		return *k
	}
	k := make([]byte, sha256.Size)
	rand.Read(k)
	redactionKey.CompareAndSwap(nil, &k)
	return *redactionKey.Load()
}

// Redact replaces in place what is secret in an object of the API: the values of
// Secrets, also in lists and within other objects, and tokens. Equal values stay
// equal, so that a change of one can be seen, but it cannot be told what it was.
func Redact(obj map[string]any) { redact(obj, false) }

// secret reports whether all that is said about the target is secret.
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
		for _, op := range patch {
			if op, ok := op.(map[string]any); ok {
				path, _ := op["path"].(string)
				replace(op, "value", strings.HasPrefix(path, "/data"))
			}
		}
	}
	return redact(v, true)
}

// redact goes through v; in a secret one every map could be a Secret or a patch
// of one, whatever its kind says.
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

// embeddedSecret finds a Secret in a text: what was last applied, a bundle of
// manifests.
var embeddedSecret = regexp.MustCompile(`\bkind\\*"?\s*:\s*\\*["']?Secret(List)?\b`)

func redactSecret(v map[string]any) {
	for _, field := range []string{"data", "stringData", "binaryData"} {
		replace(v, field, field != "stringData")
	}
	meta, _ := v["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for k, x := range annotations {
		// Tools keep there what they applied, often packed.
		text, _ := x.(string)
		if strings.Contains(k, "applied") || strings.Contains(k, "original") || strings.HasPrefix(text, "{") {
			replace(annotations, k, false)
		}
	}
}

// redactStatus keeps of an error about a Secret what cannot quote it.
func redactStatus(t Target, status map[string]any) map[string]any {
	reason, _ := status["reason"].(string)
	message, _ := status["message"].(string)
	if kept := redactMessage(t, reason, message); kept != message {
		status["message"] = kept
		delete(status, "details")
	}
	return status
}

// redactMessage exists because a patch that cannot be applied is quoted in the
// message, with the whole object.
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

// replace puts digests in the place of all values in m[key], however deep.
func replace(m map[string]any, key string, isBase64 bool) {
	if v, ok := m[key]; ok {
		m[key] = digests(v, isBase64)
	}
}

func digests(v any, isBase64 bool) any {
	switch v := v.(type) {
	case nil:
		return nil // in a patch: to be removed
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
		// Of what base64 stands for, so that stringData and the data that comes
		// of it are seen to be equal.
		if plain, err := base64.StdEncoding.DecodeString(v); isBase64 && err == nil {
			return digest(plain)
		}
		return digest([]byte(v))
	default:
		return digest([]byte(fmt.Sprint(v)))
	}
}

var redacted = regexp.MustCompile("^" + redactedPrefix + "[0-9a-f]{8}$")

// IsRedacted says that the text stands for a value of a Secret.
func IsRedacted(text string) bool { return redacted.MatchString(text) }

func digest(value []byte) string {
	mac := hmac.New(sha256.New, Key())
	mac.Write(value)
	return redactedPrefix + hex.EncodeToString(mac.Sum(nil)[:4])
}
