package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pages runs koboshi manual, and returns the pages by their names.
func pages(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "man1")
	if code, _, said := run(t, "manual", dir); code != exitOK {
		t.Fatalf("exit code %d: %s", code, said)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(data)
	}
	return all
}

func TestEveryCommandHasAManualPageThatDependsOnlyOnTheDate(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1800000000") // in January 2027
	first, second := pages(t), pages(t)
	for _, name := range []string{"koboshi.1", "koboshi-check.1", "koboshi-check-replay.1", "koboshi-completion-bash.1", "koboshi-kubectl.1"} {
		page := first[name]
		if !strings.Contains(page, `"Jan 2027"`) || !strings.Contains(page, "SH SYNOPSIS") {
			t.Errorf("%s is not a manual page of January 2027:\n%.300s", name, page)
		}
	}
	if _, hidden := first["koboshi-check-lab.1"]; hidden {
		t.Error("a hidden command has a page")
	}
	for name, page := range first {
		if second[name] != page {
			t.Errorf("%s is another one the second time", name)
		}
	}
}

func TestManualPagesNeedADate(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	if code, _, said := run(t, "manual", t.TempDir()); code != exitUsage || !strings.Contains(said, "SOURCE_DATE_EPOCH") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
