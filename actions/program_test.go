package actions

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/report"
)

// With the real program, a check that has no project ends at once, and reports can be merged. This shows
// that it knows all arguments which the scripts give it.
func TestRealProgramUnderstandsTheScripts(t *testing.T) {
	program := os.Getenv("KOBOSHI")
	if program == "" {
		t.Skip("KOBOSHI does not name the koboshi program; build it, and set KOBOSHI to its absolute path")
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "koboshi")); err != nil {
		t.Fatal(err)
	}
	p := newPipeline(t, clean())
	p.path = bin + string(os.PathListSeparator) + p.path
	r := p.run("check", map[string]string{"budget": "5m", "upgrade-from": "v1.2.0"})
	if r.code != 2 {
		t.Errorf("without a project, the exit code is %d:\n%s", r.code, r.log)
	}
	mustContain(t, "the log", r.log, "could not check: ")

	first, second := saved(t, part(clean(), 1), filepath.Join(p.dir, "1.json")), saved(t, part(found(1), 2), filepath.Join(p.dir, "2.json"))
	r = p.run("check", map[string]string{"reports": first + "\n" + second})
	if r.code != 1 {
		t.Errorf("the exit code of merged reports is %d:\n%s", r.code, r.log)
	}
	mustContain(t, "the comment", p.written(), "LEAK")
	merged, err := report.ReadFile(r.outputs["json"])
	if err != nil || len(merged.Findings) != 1 {
		t.Errorf("merged: %+v (%v)", merged, err)
	}

	j := newPipelineJob(t)
	j.program(program)
	if code, log := j.run("koboshi-check", nil); code != 2 {
		t.Errorf("in GitLab, without a project, the exit code is %d:\n%s", code, log)
	}
	for name, r := range map[string]*report.Report{"part-1.json": part(clean(), 1), "part-2.json": part(found(1), 2)} {
		saved(t, r, filepath.Join(j.dir, "koboshi-report", name))
	}
	if code, log := j.run(".koboshi-report", nil); code != 1 {
		t.Errorf("in GitLab, the exit code of merged reports is %d:\n%s", code, log)
	}
	j.shown(".koboshi-report", 1)
}
