package conformance

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// madeByCommands lists the operators that are made by the commands in their READMEs.
var madeByCommands = []struct {
	name string
	// complete means that all files of the operator are scaffolded.
	complete bool
}{{"foo", true}}

// differences is the file that explains how the operators differ from their scaffolds.
const differences = "DIFFERENCES.md"

func TestAnOperatorDiffersFromWhatItsCommandsMakeOnlyAsExplained(t *testing.T) {
	t.Parallel()
	for _, operator := range madeByCommands {
		t.Run(operator.name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join("..", "operators", operator.name)
			h := harbour{t, filepath.Join(t.TempDir(), operator.name)}
			if err := os.Mkdir(h.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, args := range commandsOf(t, filepath.Join(folder, "README.md")) {
				h.must(koboshi, args...)
			}
			made, have := filesOf(t, h.dir), trackedFiles(t, folder)
			var differ []string
			for name, content := range made {
				if !bytes.Equal(content, have[name]) {
					differ = append(differ, name)
				}
			}
			for name := range have {
				if _, scaffolded := made[name]; operator.complete && !scaffolded {
					differ = append(differ, name)
				}
			}
			explained := explainedFor(t, operator.name)
			for _, name := range differ {
				if !slices.Contains(explained, name) {
					t.Errorf("operators/%s/%s is not what koboshi scaffolds; make it the same, or explain why in operators/%s", operator.name, name, differences)
				}
			}
			for _, name := range explained {
				if !slices.Contains(differ, name) {
					t.Errorf("operators/%s lists %s of %s, which is what koboshi scaffolds; remove the line", differences, name, operator.name)
				}
			}
		})
	}
}

// commandsOf returns the arguments of the koboshi commands that a README lists to make the project.
func commandsOf(t *testing.T, readme string) (commands [][]string) {
	t.Helper()
	data, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^koboshi ((?:init|create|edit) .*)$`).FindAllSubmatch(data, -1) {
		commands = append(commands, strings.Fields(string(match[1])))
	}
	if len(commands) < 2 {
		t.Fatalf("%s lists %d commands", readme, len(commands))
	}
	return commands
}

// explainedFor returns the files that DIFFERENCES.md lists for an operator.
func explainedFor(t *testing.T, operator string) (files []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "operators", differences))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(data), "\n## "+operator+"\n")
	if !found {
		t.Fatalf("operators/%s has no section %s", differences, operator)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\S.* \\|$").FindAllStringSubmatch(section, -1) {
		files = append(files, match[1])
	}
	return files
}

// filesOf returns the files in a folder, except for caches.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name == ".cache" {
				return fs.SkipDir
			}
			return nil
		}
		all[name], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// trackedFiles returns only the files of a folder that git tracks, because the other files may be
// build output.
func trackedFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a checkout: %v", err)
	}
	all := map[string][]byte{}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err == nil {
			all[name] = data
		}
	}
	return all
}
