package report

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report/anchor"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// SARIFOptions locates the files to which results refer.
type SARIFOptions struct {
	// Root is the folder of the project, to which the paths in the report are relative. An
	// empty Root means the current folder. If Root is in a git repository, the paths in
	// SARIF start at the top of the repository, as GitHub requires.
	Root string
}

// These types are the part of SARIF 2.1.0 that reports use.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Automation  sarifID           `json:"automationDetails"`
		Invocations []sarifInvocation `json:"invocations"`
		ColumnKind  string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID         string          `json:"id"`
		Name       string          `json:"name"`
		Short      sarifText       `json:"shortDescription"`
		Full       sarifText       `json:"fullDescription"`
		Help       sarifText       `json:"help"`
		Default    sarifLevel      `json:"defaultConfiguration"`
		Properties sarifProperties `json:"properties"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifLevel struct {
		Level gravity `json:"level"`
	}
	sarifProperties struct {
		Tags      []string `json:"tags"`
		Precision string   `json:"precision"`
		Severity  string   `json:"problem.severity"`
	}
	sarifID struct {
		ID string `json:"id"`
	}
	sarifInvocation struct {
		Successful  bool      `json:"executionSuccessful"`
		CommandLine string    `json:"commandLine,omitempty"`
		ExitCode    int       `json:"exitCode"`
		Start       string    `json:"startTimeUtc,omitempty"`
		Said        []sarifOf `json:"toolExecutionNotifications,omitempty"`
	}
	sarifOf struct {
		Level   gravity   `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        gravity           `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   map[string]any    `json:"properties,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

const (
	homepage    = "https://github.com/koboshi-dev/koboshi"
	sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"
)

// WriteSARIF writes the findings for a code review, in SARIF 2.1.0 as GitHub's code
// scanning accepts it.
func (r *Report) WriteSARIF(w io.Writer, o SARIFOptions) error {
	paths, err := pathsFrom(o.Root)
	if err != nil {
		return fmt.Errorf("writing the report as SARIF: %w", err)
	}
	project := anchor.Open(paths.root)
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "koboshi check", InformationURI: homepage, Rules: r.rules()}},
		Automation:  sarifID{r.category()},
		Invocations: []sarifInvocation{r.invocation()},
		ColumnKind:  "utf16CodeUnits",
		Results:     []sarifResult{},
	}
	for _, f := range slices.Concat(r.Findings, r.remarks()) {
		run.Results = append(run.Results, r.result(f, run.Tool.Driver.Rules, paths, project))
	}
	data, err := encoded(sarifLog{sarifSchema, "2.1.0", []sarifRun{run}})
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return fmt.Errorf("writing the report as SARIF: %w", err)
	}
	return nil
}

// category names the analysis. GitHub closes the alerts of a category that the next upload of the
// category does not contain, so a check and an upgrade of one controller must not share it.
func (r *Report) category() string {
	category := "koboshi-check/" + inline(r.Subject) + "/"
	for _, arg := range r.Args {
		if arg == "--" {
			break
		}
		if name, _, _ := strings.Cut(arg, "="); name == "--upgrade-from" {
			return category + "upgrade/"
		}
	}
	return category
}

// rules returns all verdicts, including verdicts without findings, so that users see what
// was checked.
func (r *Report) rules() []sarifRule {
	known := slices.Clone(verdicts)
	for _, f := range r.Findings {
		if !slices.ContainsFunc(known, func(v verdict) bool { return v.Verdict == f.Verdict }) {
			known = append(known, about(f.Verdict))
		}
	}
	rules := make([]sarifRule, len(known))
	for i, v := range known {
		severity := map[gravity]string{grave: "error", middle: "warning", slight: "recommendation"}[v.gravity]
		rules[i] = sarifRule{
			ID: ruleID(v.Verdict), Name: ruleName(v.Verdict),
			Short:      sarifText{Text: inline(string(v.Verdict))},
			Full:       sarifText{Text: v.meaning},
			Help:       help(v),
			Default:    sarifLevel{v.gravity},
			Properties: sarifProperties{Tags: []string{"reliability", "kubernetes"}, Precision: "very-high", Severity: severity},
		}
	}
	return rules
}

// help explains a verdict, and what to do about its findings in general.
func help(v verdict) sarifText {
	// The most frequent finding has a fault and a file.
	usual := judge.Finding{Verdict: v.Verdict, Fault: &fault.Fault{}, Replay: "koboshi check replay"}
	fixed := "Fixed when " + fixedWhen(usual) + "."
	return sarifText{
		Text:     paragraphs(v.meaning, v.cause, remedy(usual), fixed),
		Markdown: paragraphs("**"+v.meaning+"**", v.cause, remedy(usual), fixed),
	}
}

func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n\n")
}

// ruleID returns the ID of the rule for a verdict, such as "koboshi/hot-loop".
func ruleID(v judge.Verdict) string { return "koboshi/" + slug(string(v), 0) }

// ruleName returns the name of the rule for a verdict, such as "HotLoop".
func ruleName(v judge.Verdict) string {
	var name strings.Builder
	for word := range strings.SplitSeq(slug(string(v), 0), "-") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return name.String()
}

func (r *Report) invocation() sarifInvocation {
	i := sarifInvocation{Successful: r.Stopped == "" && r.Idle == "", CommandLine: inline(r.Command), ExitCode: r.ExitCode()}
	if !r.Started.IsZero() {
		i.Start = r.Started.UTC().Format(time.RFC3339)
	}
	i.Said = append(i.Said, sarifOf{slight, sarifText{Text: r.outcome()}})
	for _, line := range r.preface() {
		i.Said = append(i.Said, sarifOf{middle, sarifText{Text: line}})
	}
	for _, note := range r.Notes {
		i.Said = append(i.Said, sarifOf{slight, sarifText{Text: plain(note)}})
	}
	return i
}

func (r *Report) result(f judge.Finding, rules []sarifRule, paths paths, project *anchor.Project) sarifResult {
	v := about(f.Verdict)
	id := ruleID(f.Verdict)
	result := sarifResult{
		RuleID:    id,
		RuleIndex: slices.IndexFunc(rules, func(rule sarifRule) bool { return rule.ID == id }),
		Level:     v.gravity,
		Message:   sarifText{Text: message(f)},
		// GitHub recognizes an alert only by the first of these fingerprints.
		Fingerprints: map[string]string{"primaryLocationLineHash": inline(f.ID) + ":1", "koboshiFinding/v1": inline(f.ID)},
		Properties:   map[string]any{"seed": fmt.Sprint(f.Seed), "reproduced": f.Reproduced, "attempts": f.Attempts},
	}
	if at := r.lineOf(f, project); at.File != "" {
		result.Locations = []sarifLocation{{
			Physical: sarifPhysical{sarifArtifact{paths.uri(at.File), "%SRCROOT%"}, sarifRegion{at.Number}},
		}}
		if at := place(f); at != "" {
			result.Locations[0].Logical = []sarifLogical{{at}}
		}
	}
	return result
}

// message describes a finding in a few lines. GitHub shows the message as text.
func message(f judge.Finding) string {
	lines := []string{inline(string(f.Verdict)) + ": " + inline(f.Sentence)}
	for i, d := range f.Differences {
		if i == mostDifferences {
			lines = append(lines, "and "+noun.Count(len(f.Differences)-i, "more difference"))
			break
		}
		lines = append(lines, fmt.Sprintf("%s %s: want %s, got %s", inline(d.Object), pathText(d), orNothing(d.Want), orNothing(d.Got)))
	}
	if f.Input != "" {
		lines = append(lines, "Input: "+inline(f.Input))
	}
	if text := recovery(f); text != "" {
		lines = append(lines, "Recovered: "+text)
	}
	if f.LastAction != "" {
		lines = append(lines, "Last action: "+inline(f.LastAction))
	}
	if s := sure(f); s != "" {
		lines = append(lines, strings.ToUpper(s[:1])+s[1:]+".")
	}
	if f.Replay != "" {
		lines = append(lines, "Replay: "+inline(f.Replay))
	}
	if text := remedy(f); text != "" {
		lines = append(lines, "To fix: "+text)
	}
	lines = append(lines, "Fixed when "+fixedWhen(f)+".")
	return strings.Join(lines, "\n")
}

// paths converts paths of the report to paths from the top of the repository.
type paths struct {
	root, top string // absolute
}

func pathsFrom(root string) (paths, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return paths{}, err
	}
	for top := absolute; ; top = filepath.Dir(top) {
		// In a worktree, .git is a file.
		if _, err := os.Stat(filepath.Join(top, ".git")); err == nil {
			return paths{absolute, top}, nil
		}
		if top == filepath.Dir(top) {
			return paths{absolute, absolute}, nil
		}
	}
}

func (p paths) uri(path string) string {
	return (&url.URL{Path: p.fromTop(path)}).EscapedPath()
}

// fromTop returns the path of a file from the top of the repository, with slashes.
func (p paths) fromTop(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.root, path)
	}
	relative, err := filepath.Rel(p.top, path)
	if err != nil || strings.HasPrefix(relative, "..") {
		// For a file outside the repository, give only the name: the path would be of no
		// use to readers, and would reveal the folders of the machine.
		relative = filepath.Base(path)
	}
	return filepath.ToSlash(relative)
}
