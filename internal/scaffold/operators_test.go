package scaffold

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// explanations explains where the operators differ from the scaffold.
const explanations = "../../operators/DIFFERENCES.md"

// older lists the operators that are older than the scaffold. A test of package conformance makes
// the other operators again, with the commands in their README.
var older = []string{"storagebucket", "markdownview"}

// An explanation is a row of a table in explanations.
type explanation struct {
	pattern   string
	operators []string
}

func TestWhereAnOlderOperatorDiffersFromTheScaffoldIsExplained(t *testing.T) {
	rows := readExplanations(t)
	used := map[string]bool{}
	for _, operator := range older {
		for _, file := range differing(t, filepath.Join("../../operators", operator)) {
			found := false
			for _, row := range rows {
				if matches, _ := path.Match(row.pattern, file); matches && slices.Contains(row.operators, operator) {
					if found {
						t.Errorf("%s: two rows explain %s of %s", explanations, file, operator)
					}
					found, used[operator+" "+row.pattern] = true, true
				}
			}
			if !found {
				t.Errorf("operators/%s/%s is not what the scaffold makes, and %s does not say why", operator, file, explanations)
			}
		}
	}
	for _, row := range rows {
		for _, operator := range row.operators {
			if !used[operator+" "+row.pattern] {
				t.Errorf("%s explains %s of %s, but no such file differs from the scaffold", explanations, row.pattern, operator)
			}
		}
	}
}

func readExplanations(t *testing.T) (rows []explanation) {
	data, err := os.ReadFile(explanations)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(.+)` \\| (.+) \\| .+ \\|$").FindAllStringSubmatch(string(data), -1) {
		if _, err := path.Match(m[1], ""); err != nil {
			t.Errorf("%s: %s: %v", explanations, m[1], err)
		}
		rows = append(rows, explanation{m[1], strings.Split(m[2], ", ")})
	}
	return rows
}

// differing lists the files of the scaffold that a project lacks or has with different content.
func differing(t *testing.T, dir string) (files []string) {
	project, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	scaffold, err := scaffoldingOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := scaffold.render(project)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tree.Paths() {
		if data, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !bytes.Equal(data, tree[file].Content) {
			files = append(files, file)
		}
	}
	return files
}

// The operators are older than the licence headers of the scaffold, so the files are not the same byte for byte. A
// repair of one copy must reach the others.
func TestTheOperatorsMakeCertificatesAsTheScaffoldDoes(t *testing.T) {
	const in = "internal/certificates"
	made, err := filepath.Glob(filepath.Join("_layers/webhooks", in, "*.go"))
	if err != nil || len(made) < 3 {
		t.Fatalf("%q, %v", made, err)
	}
	for _, file := range made {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, want, found := bytes.Cut(data, []byte("*/\n\n"))
		if !found {
			t.Fatalf("%s has no licence header", file)
		}
		for _, operator := range older {
			copied := filepath.Join("../../operators", operator, in, filepath.Base(file))
			if got, err := os.ReadFile(copied); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what %s makes, %v", copied, file, err)
			}
		}
	}
}
