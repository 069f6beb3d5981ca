package output

import (
	"strings"
	"testing"
)

func TestWhatAProgramLacksIsNamedWithTheFlagThatSuppliesIt(t *testing.T) {
	for text, want := range map[string]string{
		"panic: WATCH_NAMESPACE must be set":                                   "--env WATCH_NAMESPACE=VALUE",
		"Error: environment variable VAULT_ADDR is not set\n":                  "--env VAULT_ADDR=VALUE",
		"missing required env RELATED_IMAGE_BACKUP":                            "--env RELATED_IMAGE_BACKUP=VALUE",
		"  File \"main.py\", line 3\nKeyError: 'POD_NAMESPACE'\n":              "--env POD_NAMESPACE=VALUE",
		"the environment variable for the namespace is required":               "--env NAME=VALUE",
		"ConfigError: Missing region in config":                                "--env NAME=VALUE",
		"botocore.exceptions.NoCredentialsError: Unable to locate credentials": "credentials",
		"google: could not find default credentials. See https://example.com":  "credentials",
		"Error: Cannot find module 'lantern'":                                  "",
		"flag provided but not defined: -metrics-addr":                         "",
		"no matches for kind \"Ship\" in version \"v1\"":                       "",
		"WATCH_NAMESPACE must be set\n" + strings.Repeat("going on\n", 100):    "",
		"failed to start: listen tcp :8080: bind: address already in use":      "",
	} {
		if got := Lacks(text); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzLacks(f *testing.F) {
	f.Add("KeyError: 'A_B'")
	f.Fuzz(func(t *testing.T, text string) {
		if got := Lacks(text); got != "" && !strings.Contains(got, "--env ") {
			t.Errorf("%q", got)
		}
	})
}
