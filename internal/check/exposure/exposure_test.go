package exposure

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

const password = "s3cr3t-Passw0rd"

func ref(kind, name string) state.Ref {
	parsed := schema.ParseGroupKind(kind)
	return state.Ref{GroupKind: parsed, Namespace: "default", Name: name}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// secret returns the values of a Secret with one entry.
func secret(key, plain string) *Values {
	v := &Values{}
	v.Add(ref("Secret", "db"), state.Object{"data": map[string]any{key: encoded(plain)}})
	return v
}

// wrote returns a history in which each object is created.
func wrote(t *testing.T, objects ...string) (h state.History) {
	t.Helper()
	for i, text := range objects {
		kind, body, _ := strings.Cut(text, " ")
		content := state.Object{}
		if err := json.Unmarshal([]byte(body), &content); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		h.Changes = append(h.Changes, state.Change{Revision: int64(i + 1), Ref: ref(kind, fmt.Sprint("o", i)), Op: state.Created, After: content})
	}
	return h
}

func shown(places []Place) string {
	var all []string
	for _, p := range places {
		switch {
		case p.Line != "":
			all = append(all, "log: "+p.Line)
		case p.Open:
			all = append(all, fmt.Sprintf("%d %s", p.Revision, p.Path))
		default:
			all = append(all, fmt.Sprintf("%d (%s)", p.Revision, p.Path))
		}
	}
	return strings.Join(all, ", ")
}

func TestAValueIsFoundWhereverItIsReadable(t *testing.T) {
	for object, want := range map[string]string{
		`ConfigMap {"data":{"password":"` + password + `"}}`:                                                      "1 data.password",
		`ConfigMap {"data":{"app.conf":"user=a\npassword=` + password + `\n"}}`:                                   "1 data[app.conf]",
		`ConfigMap {"data":{"x":"` + encoded(password) + `"}}`:                                                    "1 data.x",
		`ConfigMap {"binaryData":{"x":"` + encoded("a="+password) + `"}}`:                                         "1 binaryData.x",
		`Event {"message":"login with ` + password + ` failed"}`:                                                  "1 message",
		`Event.events.k8s.io {"note":"` + password + `"}`:                                                         "1 note",
		`Database.x {"status":{"url":"postgres://a:` + password + `@db"}}`:                                        "1 status.url",
		`Database.x {"status":{"conditions":[{"message":"` + password + `"}]}}`:                                   "1 status.conditions[0].message",
		`Database.x {"metadata":{"annotations":{"x/last":"` + password + `"}}}`:                                   "1 metadata.annotations[x/last]",
		`Pod {"spec":{"containers":[{"env":[{"name":"A","value":"` + password + `"}]}]}}`:                         "1 spec.containers[0].env[0].value",
		`Deployment.apps {"spec":{"template":{"spec":{"initContainers":[{"args":["-p","` + password + `"]}]}}}}`:  "1 spec.template.spec.initContainers[0].args[1]",
		`CronJob.batch {"spec":{"jobTemplate":{"x":{"containers":[{"command":["--p=` + password + `"]}]}}}}`:      "1 spec.jobTemplate.x.containers[0].command[0]",
		`Database.x {"spec":{"password":"` + password + `"}}`:                                                     "1 (spec.password)",
		`Secret {"stringData":{"password":"` + password + `"}}`:                                                   "",
		`ConfigMap {"data":{"hash":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}}`:          "",
		`ConfigMap {"data":{"x":"a` + password + `b"}}`:                                                           "",
		`Database.x {"metadata":{"managedFields":[{"manager":"` + password + `"}]},"status":{"secretName":"db"}}`: "",
	} {
		if got := shown(secret("password", password).Find(wrote(t, object), nil, "")); got != want {
			t.Errorf("%s: %q, not %q", object, got, want)
		}
	}
}

func TestOnlyTheChangeThatBringsAValueCounts(t *testing.T) {
	h := wrote(t, `ConfigMap {}`, `ConfigMap {"data":{"a":"`+password+`"}}`, `ConfigMap {"data":{"a":"`+password+`","b":"1"}}`)
	for i := range h.Changes {
		h.Changes[i].Ref = h.Changes[0].Ref
	}
	if got := shown(secret("password", password).Find(h, nil, "")); got != "2 data.a" {
		t.Errorf("%q", got)
	}
}

func TestOnlyACredentialThatNoTextContainsByChanceIsSecret(t *testing.T) {
	for _, tt := range []struct {
		key, value string
		want       bool
	}{
		{"password", password, true},
		{"POSTGRES_PASSWORD", "kX9#mQ2vLp", true},
		{"join-token", "6f1e2d3c4b5a69788796", true},
		{"client-secret", "Zm9vYmFyMTIz", true},
		{"AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1", true},
		{"tls.key", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\n", true},
		{"anything", "-----BEGIN EC PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END EC PRIVATE KEY-----\n", true},
		{"tls.crt", "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBg\n-----END CERTIFICATE-----\n", false},
		{"token", "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBg\n-----END CERTIFICATE-----\n", false},
		{"username", "s3cr3t-Passw0rd", false},
		{"AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE", false},
		{"host", "db-1.default.svc", false},
		{"token", "db-1.default.svc:5432", false},
		{"token", "https://issuer.example.com/v1/token", false},
		{"password", "short1", false},
		{"password", "changeme", false},
		{"password", "Password123", false},
		{"password", "correct horse battery staple", false},
		{"password", "12345678901234567890", false},
		{"password", "a1a1a1a1a1a1", false},
		{"tokenSecret", "my-database-token-2", false},
		{"token", "2026-11-26T10:00:00Z", false},
	} {
		if got := len(secret(tt.key, tt.value).all) == 1; got != tt.want {
			t.Errorf("%s %q is secret: %t", tt.key, tt.value, got)
		}
	}
}

func TestAValueThatIsPublicOtherwiseIsNotSecret(t *testing.T) {
	leak := `ConfigMap {"data":{"password":"` + password + `"}}`
	public := map[string]any{"kind": "Database", "spec": map[string]any{"password": password}}
	for name, tt := range map[string]struct {
		baseline  state.Snapshot
		manifests []map[string]any
		more      string
		want      bool
	}{
		"only the Secret has it":                {want: true},
		"the manifest of the Secret has it":     {manifests: []map[string]any{{"kind": "Secret", "stringData": map[string]any{"password": password}}}, want: true},
		"a manifest of the scenario has it":     {manifests: []map[string]any{public}},
		"an existing object has it":             {baseline: state.Snapshot{ref("Database.x", "d"): public}},
		"an existing Secret has it":             {baseline: state.Snapshot{ref("Secret", "other"): {"data": map[string]any{"p": password}}}, want: true},
		"it is part of the name of an object":   {more: password},
		"a manifest has it in a longer word":    {manifests: []map[string]any{{"kind": "Database", "a": "x" + password}}, want: true},
		"the annotation of a Secret has it":     {manifests: []map[string]any{{"kind": "Secret", "metadata": map[string]any{"annotations": map[string]any{"a": password}}}}},
		"a patch of the scenario contains it":   {manifests: []map[string]any{{"kind": "Database", "patch": []any{map[string]any{"op": "add", "value": password}}}}},
		"a Secret of the scenario is patched":   {manifests: []map[string]any{{"kind": "Secret", "patch": map[string]any{"stringData": map[string]any{"a": password}}}}, want: true},
		"an existing object has something else": {baseline: state.Snapshot{ref("Database.x", "d"): {"a": "b"}}, want: true},
	} {
		h := wrote(t, leak)
		h.Baseline = tt.baseline
		if tt.more != "" {
			h.Changes = append(h.Changes, state.Change{Revision: 9, Ref: ref("Database.x", tt.more), Op: state.Created, After: state.Object{}})
		}
		found := secret("password", password).Find(h, tt.manifests, "password "+password)
		if got := len(found) == 2; got != tt.want || len(found) == 1 {
			t.Errorf("%s: %s", name, shown(found))
		}
	}
}

func TestALineOfTheLogIsShownWithoutTheValue(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
	for name, tt := range map[string]struct {
		values *Values
		output string
		want   string
	}{
		"plain":        {secret("password", password), "start\nconnecting with " + password + "\nready\n", "log: connecting with [secret value]"},
		"base64":       {secret("password", password), "data: " + encoded(password), "log: data: [secret value]="},
		"as JSON":      {secret("password", `kX9"mQ2vLp`), `{"msg":"kX9\"mQ2vLp"}`, `log: {"msg":"[secret value]"}`},
		"lines":        {secret("tls.key", key), "key is " + key + "done", "log: key is [secret value]"},
		"twice":        {secret("password", password), password + " and " + password, "log: [secret value] and [secret value]"},
		"another text": {secret("password", password), "ready", ""},
		"a body that client-go logs": {secret("password", password),
			`I1126 round_trippers.go:1] "Response Body" body="{\"password\":\"` + password + `\"}"` + "\n", ""},
	} {
		got := shown(tt.values.Find(state.History{}, nil, tt.output))
		if strings.TrimRight(got, "=") != strings.TrimRight(tt.want, "=") {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
}

func TestATextThatOnlyNamesACredentialIsNotSensitive(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy", "admin:$apr1$hKx1$Zq8Wm9fA1pYb2cD3eF4g51", "vault:kv2/data/db#password",
		"arn:aws:secretsmanager:eu-west-1:123456789012:secret:db1", "projects/1/secrets/db/versions/2", "/etc/tls1/tls.key", "${DB_PASSWORD_1}",
		"postgres://user1@db.example.com/x1",
	} {
		if sensitive("password", text) {
			t.Errorf("%q counts as a credential", text)
		}
	}
	for _, text := range []string{"hunter2-Xyzzy9!", "postgres://user1:s3cr3t-Pass@db.example.com/x1", "s3cr3tPassw0rd/with+slash=="} {
		if !sensitive("password", text) {
			t.Errorf("%q does not count as a credential", text)
		}
	}
}
