package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/terminal"
)

// signingKey is a key of cosign, and signingPassword its password.
const (
	signingKey      = "../ship/sign/testdata/cosign.key"
	signingPassword = "for tests only"
)

func TestASignedShipmentKeepsItsPasswordToItself(t *testing.T) {
	t.Setenv("COSIGN_PASSWORD", signingPassword)
	dist := filepath.Join(t.TempDir(), "dist")
	dir := shippable(t, "ship: {platforms: [linux/amd64], image: registry.example.com/sea:v1}\n")
	code, out, messages := run(t, "ship", "--dir", dir, "--output-dir", dist, "--sign", signingKey)
	if code != 0 || !strings.Contains(out, "\nsigned   sha256-") {
		t.Fatalf("exit code %d: %s%s", code, out, messages)
	}
	if text := out + messages; strings.Contains(text, signingPassword) || strings.Contains(text, "PRIVATE KEY") {
		t.Errorf("the output has a secret: %s", text)
	}
	if _, ok := os.LookupEnv("COSIGN_PASSWORD"); ok {
		t.Error("programs that are started later get the password")
	}
}

func TestABundleIsSignedLikeTheImage(t *testing.T) {
	t.Setenv("COSIGN_PASSWORD", signingPassword)
	dist := filepath.Join(t.TempDir(), "dist")
	dir := shippable(t, "ship: {platforms: [linux/amd64], image: 'registry.example.com/sea:v1.2.0'}\n")
	if code, _, messages := run(t, "ship", "--dir", dir, "--output-dir", dist, "--olm", "--sign", signingKey); code != 0 {
		t.Fatalf("exit code %d: %s", code, messages)
	}
	index := readIndex(t, filepath.Join(dist, "bundle-image", "index.json"))
	if len(index) != 2 || index["dev.cosignproject.cosign/image"] != "v1.2.0" || !strings.HasSuffix(index["dev.cosignproject.cosign/sigs"], ".sig") {
		t.Errorf("%v", index)
	}
}

// readIndex returns the names in a layout, by the kind that cosign gives them.
func readIndex(t *testing.T, file string) map[string]string {
	t.Helper()
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, m := range index.Manifests {
		names[m.Annotations["kind"]] = m.Annotations["org.opencontainers.image.ref.name"]
	}
	return names
}

func TestAKeyThatCannotBeUsedStopsShipBeforeTheBuild(t *testing.T) {
	dir := shippable(t, "")
	for name, c := range map[string]struct {
		password string
		args     []string
		want     string
	}{
		"an archive":       {signingPassword, []string{"--sign", signingKey, "--archive", "image.tar"}, "cannot hold signatures; omit --sign"},
		"a wrong password": {"a wrong secret", []string{"--sign", signingKey}, "check COSIGN_PASSWORD"},
		"no password":      {"", []string{"--sign", signingKey}, "set its password in COSIGN_PASSWORD, or call koboshi at a terminal"},
		"no key":           {signingPassword, []string{"--sign", "missing.key"}, "cosign generate-key-pair"},
	} {
		t.Setenv("COSIGN_PASSWORD", c.password)
		if c.password == "" {
			if err := os.Unsetenv("COSIGN_PASSWORD"); err != nil {
				t.Fatal(err)
			}
		}
		code, _, messages := run(t, append([]string{"ship", "--dir", dir}, c.args...)...)
		if code != exitUsage || !strings.Contains(messages, c.want) || strings.Contains(messages, "built") || strings.Contains(messages, "secret") {
			t.Errorf("%s: exit code %d, %s", name, code, messages)
		}
	}
}

func TestAPasswordIsTypedAtATerminalThatDoesNotShowIt(t *testing.T) {
	controlling, at, err := terminal.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = controlling.Close(), at.Close() }()
	if _, err := controlling.WriteString(signingPassword + "\n"); err != nil {
		t.Fatal(err)
	}
	var messages strings.Builder
	secret, err := typed(t.Context(), at, &messages, "password: ")
	if err != nil || string(secret) != signingPassword || messages.String() != "password: \n" {
		t.Errorf("typed %q, %v; messages %q", secret, err, messages.String())
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := typed(stopped, at, &messages, "password: "); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
