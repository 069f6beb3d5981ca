package controller

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	specOfDefects = regexp.MustCompile(`(?m)^\tIt\("([0-9][0-9, and]*): `)
	testElsewhere = regexp.MustCompile(`(?m)^//\s+(\d+)  .*: (Test\w+) in (\S+)$`)
	number        = regexp.MustCompile(`\d+`)
)

func TestEveryDefectOfTheTableHasATest(t *testing.T) {
	text, err := os.ReadFile("defects_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, found := range specOfDefects.FindAllStringSubmatch(string(text), -1) {
		for _, n := range number.FindAllString(found[1], -1) {
			tested[n] = true
		}
	}
	for _, found := range testElsewhere.FindAllStringSubmatch(string(text), -1) {
		tested[found[1]] = hasTest(t, filepath.Join("..", "..", found[3]), found[2])
	}
	for n := 1; n <= 24; n++ {
		if !tested[strconv.Itoa(n)] {
			t.Errorf("defect %d: no spec begins with its number, and the comment in defects_test.go names no other test for it", n)
		}
	}
}

// hasTest reports whether a folder has a test function of this name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
