package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// An output is a form of the report, and the file it goes to; empty is standard
// output.
type output struct{ form, file string }

type outputs []output

var forms = []string{"text", "json", "junit", "sarif", "html"}

// parseOutputs reads -o. The text is said in any case, unless another form goes to
// standard output.
func parseOutputs(given []string) (outputs, error) {
	var all outputs
	onStdout := 0
	for _, text := range given {
		form, file, toFile := strings.Cut(text, "=")
		switch {
		case !slices.Contains(forms, form):
			return nil, fmt.Errorf("-o %s: there is no form %q; there are %s", text, form, strings.Join(forms, ", "))
		case toFile && file == "":
			return nil, fmt.Errorf("-o %s: no file follows the =; name one, or leave the = out", text)
		case toFile:
			path, err := writableFile("-o "+form, file)
			if err != nil {
				return nil, err
			}
			file = path
		case form == "html":
			return nil, errors.New("-o html: a page is no text for a terminal; name a file, as -o html=report.html")
		default:
			onStdout++
		}
		all = append(all, output{form, file})
	}
	if onStdout > 1 {
		return nil, errors.New("-o: only one form can go to standard output; give the others a file, as -o junit=report.xml")
	}
	if onStdout == 0 {
		all = append(all, output{form: "text"})
	}
	return all, nil
}

func (all outputs) write(result *check.Result, verbose bool, stdio Stdio) error {
	for _, o := range all {
		if err := o.write(result, verbose, stdio); err != nil {
			return fmt.Errorf("writing the report as %s: %w", o.form, err)
		}
	}
	return nil
}

func (o output) write(result *check.Result, verbose bool, stdio Stdio) (err error) {
	w := stdio.Out
	if o.file != "" {
		file, err := os.Create(o.file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		w = file
	}
	r := result.Report
	switch o.form {
	case "json":
		return r.WriteJSON(w)
	case "junit":
		return r.WriteJUnit(w)
	case "sarif":
		return r.WriteSARIF(w, report.SARIFOptions{})
	case "html":
		return r.WriteHTML(w, result.Traces)
	}
	return r.WriteText(w, textOptions(w, verbose))
}

func textOptions(w io.Writer, verbose bool) report.TextOptions {
	o := report.TextOptions{Width: 80, Verbose: verbose}
	if file, ok := w.(*os.File); ok && isTerminal(file) {
		o.Color, o.Width = os.Getenv("NO_COLOR") == "", widthOf(file)
	}
	return o
}

// widthOf is the columns of a terminal, 80 of what is none.
func widthOf(file *os.File) int {
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// writePlan says what would be run.
func writePlan(stdio Stdio, result *check.Result) error {
	for _, p := range result.Plan {
		if _, err := fmt.Fprintln(stdio.Out, p); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(stdio.Out, "%d faults; %d are not worth a run\n", len(result.Plan), len(result.Skipped))
	return err
}

// keep writes each finding as a file, and says in the report which. What did not show
// every time is kept too: it is tried first the next time.
func (f *checkFlags) keep(result *check.Result) error {
	var all []*judge.Finding
	for i := range result.Report.Findings {
		all = append(all, &result.Report.Findings[i])
	}
	for _, not := range result.Report.Inconclusive {
		if not.Suspicion != nil {
			all = append(all, not.Suspicion)
		}
	}
	for _, finding := range all {
		sc := result.Scenarios[finding.Scenario]
		if sc == nil || finding.Fault == nil && finding.Attempts == 0 {
			continue
		}
		saved := report.Saved{
			Finding: *finding, Scenario: *sc, Subject: f.subject(), Plane: f.profile, Trace: result.Traces[finding.ID],
		}
		path, err := report.SaveFinding(f.findings, saved)
		if err != nil {
			return err
		}
		finding.File, finding.Replay = filepath.ToSlash(path), "koboshi check replay "+filepath.ToSlash(path)
	}
	return nil
}

// absolute makes the program of a command line one that is found from any folder.
func absolute(command []string) ([]string, error) {
	path, err := lookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("the controller %s cannot be started: %w; name an executable after --", command[0], err)
	}
	return append([]string{path}, command[1:]...), nil
}

// sourcesOf are the files of a project to which a finding can be pinned.
func sourcesOf(p *project.Project) report.Sources {
	var s report.Sources
	if p.Main != "" {
		s.Main = filepath.ToSlash(filepath.Join(p.Main, "main.go"))
	}
	for _, role := range p.Subject.Roles {
		s.RBAC = cmp.Or(s.RBAC, role.File)
	}
	return s
}

// profileFor is the plane that a controller with these permissions needs: only
// who may write workloads waits for what upstream's controllers make of them.
func profileFor(s subject.Subject) string {
	workloads := []string{"deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "cronjobs"}
	for _, role := range s.Roles {
		rules, _, _ := unstructured.NestedSlice(role.Object.Object, "rules")
		for _, rule := range rules {
			rule, _ := rule.(map[string]any)
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			verbs, _, _ := unstructured.NestedStringSlice(rule, "verbs")
			if slices.ContainsFunc(resources, func(r string) bool { return slices.Contains(workloads, r) }) &&
				slices.ContainsFunc(verbs, func(v string) bool { return slices.Contains([]string{"create", "patch", "update", "*"}, v) }) {
				return "workloads"
			}
		}
	}
	return "gc"
}

// scenariosOf makes scenarios of the project's samples and schemas.
func scenariosOf(p *project.Project, seed uint64, progress *report.Progress) ([]*scenario.Scenario, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, object := range p.Subject.Install {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
			return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", object.GetName(), err)
		}
		crds = append(crds, crd)
	}
	var samples []scenario.Sample
	for _, s := range p.Samples {
		samples = append(samples, scenario.Sample{File: s.File, Objects: s.Objects})
	}
	all, notes, err := scenario.Generate(samples, crds, scenario.GenerateOptions{Primary: p.Subject.Primary, Seed: seed})
	if err == nil && len(all) > 0 {
		for _, note := range notes {
			progress.Note(note)
		}
	}
	switch {
	case err != nil || len(all) > 0:
	case len(samples) > 0:
		err = fmt.Errorf("no sample is good for a scenario: %s; mend it, or write a --scenario", strings.Join(notes, "; "))
	default:
		err = errors.New("there are no samples to make scenarios from; put some into config/samples, name others with --samples, or write a --scenario")
	}
	return all, err
}
