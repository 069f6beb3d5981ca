package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

// configured returns the options for flags in a project with settings.
func configured(t *testing.T, settings string, args ...string) (*checkFlags, check.Options, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "koboshi.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	var f checkFlags
	fs := pflag.NewFlagSet("check", pflag.ContinueOnError)
	f.register(fs)
	if err := fs.Parse(append([]string{"--dir=" + dir}, args...)); err != nil {
		t.Fatal(err)
	}
	o, err := f.options(fs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &f, o, f.configure(&o)
}

const someSettings = "check:\n  profile: full\n  faults: {only: [conflict]}\n  ignore: [A b]\n"

func TestSettingsOfTheProjectAreUsed(t *testing.T) {
	f, o, err := configured(t, someSettings)
	if err != nil {
		t.Fatal(err)
	}
	if o.Profile != "full" || !slices.Equal(o.Faults, []fault.Kind{fault.Conflict}) || !slices.Equal(o.Opinions.Ignore, []string{"A b"}) {
		t.Errorf("profile %s, faults %v, ignore %q", o.Profile, o.Faults, o.Opinions.Ignore)
	}
	if !slices.Contains(f.subject(), "--profile=full") {
		t.Errorf("a replay would not use the profile: %q", f.subject())
	}
	if got := o.Opinions.Summary(); len(got) != 3 || filepath.Base(o.OpinionsFile) != "koboshi.yaml" {
		t.Errorf("the report would name %q from %s", got, o.OpinionsFile)
	}
}

func TestFlagsTakePrecedenceOverSettings(t *testing.T) {
	f, o, err := configured(t, someSettings, "--profile=gc", "--faults=restart")
	if err != nil {
		t.Fatal(err)
	}
	if o.Profile != "gc" || !slices.Equal(o.Faults, []fault.Kind{fault.Restart}) || !slices.Contains(f.subject(), "--profile=gc") {
		t.Errorf("profile %s, faults %v, subject %q", o.Profile, o.Faults, f.subject())
	}
	if got := o.Opinions.Summary(); !slices.Equal(got, []string{"ignore (1)"}) {
		t.Errorf("the report would name %q", got)
	}
}

func TestAnotherFileOfSettingsCanBeNamed(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte("check: {profile: api}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, o, err := configured(t, someSettings, "--config="+other); err != nil || o.Profile != "api" || len(o.Opinions.Ignore) > 0 {
		t.Errorf("profile %s, ignore %q: %v", o.Profile, o.Opinions.Ignore, err)
	}
	if _, _, err := configured(t, someSettings, "--config=nowhere.yaml"); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("a file that does not exist: %v", err)
	}
	if _, _, err := configured(t, "chekc: {}\n"); err == nil || !strings.Contains(err.Error(), "koboshi.yaml:1: chekc: unknown field; did you mean check?") {
		t.Errorf("a misspelled section: %v", err)
	}
}
