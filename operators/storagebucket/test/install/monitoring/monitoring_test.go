// Package monitoring tests the alerts and the dashboard against the metrics that
// the manager has.
package monitoring

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	promql "github.com/prometheus/prometheus/promql/parser"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // registers its metrics
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
)

const config = "../../../config/"

// A query is one PromQL expression, with the place where it is written.
type query struct{ where, expr string }

// series maps the name of every metric that the manager may have to its label names.
type series map[string][]string

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

func registered(t *testing.T) series {
	t.Helper()
	metrics.RegisterBuckets(nil)
	metrics.RegisterBuildInfo()
	registry, ok := ctrlmetrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatal("controller-runtime's registry cannot describe its metrics")
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	all := series{}
	for d := range descriptions {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		names := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
		all[m[1]] = names
		// The series of a histogram have these suffixes, which no query uses with other
		// kinds of metrics.
		all[m[1]+"_bucket"] = append(slices.Clone(names), "le")
		all[m[1]+"_sum"], all[m[1]+"_count"] = names, names
	}
	return all
}

func rules(t *testing.T) []monitoringv1.Rule {
	t.Helper()
	text, err := os.ReadFile(config + "prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object monitoringv1.PrometheusRule
	if err := yaml.UnmarshalStrict(text, &object); err != nil {
		t.Fatal(err)
	}
	var all []monitoringv1.Rule
	for _, group := range object.Spec.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("there are no rules")
	}
	return all
}

// A dashboard is the part of Grafana's model that the tests use.
type dashboard struct {
	Panels []struct {
		ID          int
		Type, Title string
		Description string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name       string
			Definition string
		}
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(config + "grafana/storagebucket.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

// queries returns all queries, with Grafana's variables filled in.
func queries(t *testing.T) []query {
	t.Helper()
	var all []query
	for _, rule := range rules(t) {
		all = append(all, query{"alert " + rule.Alert, rule.Expr.String()})
	}
	d := readDashboard(t)
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$store", ".*").Replace(target.Expr)
			all = append(all, query{"panel " + panel.Title, expr})
		}
	}
	for _, variable := range d.Templating.List {
		if m := labelValues.FindStringSubmatch(variable.Definition); m != nil {
			all = append(all, query{"variable " + variable.Name, "sum by (" + m[2] + ") (" + m[1] + ")"})
		}
	}
	return all
}

func TestEveryMetricAndLabelAskedForExists(t *testing.T) {
	known := registered(t)
	for _, q := range queries(t) {
		expr, err := promql.NewParser(promql.Options{}).ParseExpr(q.expr)
		if err != nil {
			t.Errorf("%s: %v in\n%s", q.where, err, q.expr)
			continue
		}
		for _, problem := range check(expr, known) {
			t.Errorf("%s: %s", q.where, problem)
		}
	}
}

// check returns the parts of an expression that match no series of the manager.
func check(expr promql.Expr, known series) []string {
	var problems []string
	promql.Inspect(expr, func(node promql.Node, _ []promql.Node) error {
		switch n := node.(type) {
		case *promql.VectorSelector:
			names, ok := known[n.Name]
			if !ok {
				problems = append(problems, "there is no metric "+n.Name)
				break
			}
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(names, m.Name) {
					problems = append(problems, n.Name+" has no label "+m.Name)
				}
			}
		case *promql.AggregateExpr:
			for _, label := range n.Grouping {
				for _, name := range namesIn(n.Expr) {
					if names, ok := known[name]; ok && !slices.Contains(names, label) {
						problems = append(problems, name+" cannot be grouped by "+label)
					}
				}
			}
		case *promql.BinaryExpr:
			if n.VectorMatching == nil || !n.VectorMatching.On {
				break
			}
			for _, label := range n.VectorMatching.MatchingLabels {
				for _, name := range namesIn(n) {
					if names, ok := known[name]; ok && !slices.Contains(names, label) {
						problems = append(problems, name+" cannot be matched on "+label)
					}
				}
			}
		}
		return nil
	})
	return problems
}

// namesIn returns the names of the metrics below a node of the syntax tree.
func namesIn(node promql.Node) []string {
	names := map[string]bool{}
	promql.Inspect(node, func(n promql.Node, _ []promql.Node) error {
		if selector, ok := n.(*promql.VectorSelector); ok {
			names[selector.Name] = true
		}
		return nil
	})
	return slices.Collect(maps.Keys(names))
}

func TestTheCheckOfQueriesFindsWhatIsWrong(t *testing.T) {
	known := registered(t)
	for expr, want := range map[string]string{
		`storagebucket_probe_total`:                                                "there is no metric",
		`storagebucket_probes_total{outcome="x"}`:                                  "has no label outcome",
		`sum by (bucket) (rate(storagebucket_probes_total[5m]))`:                   "cannot be grouped by bucket",
		`storagebucket_probes_total and on (reason) storagebucket_due_lag_seconds`: "cannot be matched on reason",
		`sum by (le) (storagebucket_due_lag_seconds)`:                              "cannot be grouped by le",
	} {
		parsed, err := promql.NewParser(promql.Options{}).ParseExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(check(parsed, known), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: found %q, not %q", expr, got, want)
		}
	}
}

// labelConstants returns the possible values of the labels whose values are constants in
// the source code.
func labelConstants(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"reason":    constants(t, "../../../internal/s3store/reasons.go", ""),
		"condition": constants(t, "../../../api/v1/shared_types.go", "Condition"),
		"status":    {"True", "False", "Unknown"},
	}
}

// constants returns the declared strings whose names have the prefix.
func constants(t *testing.T, path, prefix string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		for _, value := range spec.Values {
			if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, text)
			}
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s declares no strings", path)
	}
	return found
}

func TestEveryLabelValueAskedForCanOccur(t *testing.T) {
	allowed := labelConstants(t)
	checked := 0
	for _, q := range queries(t) {
		expr, err := promql.NewParser(promql.Options{}).ParseExpr(q.expr)
		if err != nil {
			t.Fatal(err)
		}
		promql.Inspect(expr, func(n promql.Node, _ []promql.Node) error {
			selector, ok := n.(*promql.VectorSelector)
			if !ok {
				return nil
			}
			for _, m := range selector.LabelMatchers {
				for _, value := range strings.Split(m.Value, "|") {
					if values := allowed[m.Name]; values != nil {
						checked++
						if !slices.Contains(values, value) {
							t.Errorf("%s: %s is never %q", q.where, m.Name, value)
						}
					}
				}
			}
			return nil
		})
	}
	if checked == 0 {
		t.Error("no label is compared with a constant")
	}
}

func TestEveryAlertSaysWhatItMeansAndWhatToDo(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range rules(t) {
		if seen[rule.Alert] {
			t.Errorf("%s is defined twice", rule.Alert)
		}
		seen[rule.Alert] = true
		if rule.For == nil || *rule.For == "" {
			t.Errorf("%s has no duration in the field for", rule.Alert)
		}
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, s)
		}
		for _, name := range []string{"summary", "description", "runbook"} {
			if text := rule.Annotations[name]; !strings.HasSuffix(text, ".") {
				t.Errorf("%s: its %s %q is not a sentence", rule.Alert, name, text)
			}
		}
	}
}

// handbook is the URL of the published pages of docs/guide/storagebucket.
const handbook = "https://github.com/koboshi-dev/koboshi/blob/main/docs/guide/storagebucket/"

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

// anchors returns the IDs that GitHub gives the headings of a page of the handbook.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(config + "../../../docs/guide/storagebucket/" + page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, h := range heading.FindAllSubmatch(fenced.ReplaceAll(text, nil), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsNumber(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, string(h[1])))
	}
	return all
}

func TestTheHandbookHasASectionForEachAlert(t *testing.T) {
	for _, rule := range rules(t) {
		url := rule.Annotations["runbook_url"]
		at, ok := strings.CutPrefix(url, handbook)
		page, anchor, hasAnchor := strings.Cut(at, "#")
		if !ok || !hasAnchor {
			t.Errorf("%s: runbook_url %q names no section of %s", rule.Alert, url, handbook)
			continue
		}
		if want := strings.ToLower(rule.Alert); anchor != want {
			t.Errorf("%s: the section is %q, want %q", rule.Alert, anchor, want)
		}
		if found := anchors(t, page); !slices.Contains(found, anchor) {
			t.Errorf("%s: %s has no heading #%s, but %v", rule.Alert, page, anchor, found)
		}
	}
}

func TestThePanelsOfTheDashboardAreToldApart(t *testing.T) {
	ids, titles := map[int]bool{}, map[string]bool{}
	cells := map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] || titles[p.Title] {
			t.Errorf("panel %d %q is defined twice", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %q has no description or no query", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
}
