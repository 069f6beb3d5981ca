// Package monitoring tests the alerts and the dashboard against the metrics of the manager.
package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/prometheus/prometheus/promql"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // registers its metrics
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/metrics"
)

const config = "../../../config/"

// query is a PromQL expression and its location.
type query struct{ where, expr string }

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// registered returns the labels of every series that Prometheus stores, by name. Prometheus
// renames the label namespace of a site to exported_namespace, because the scraped Service
// also has a label namespace.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	metrics.Register(nil)
	registry, ok := ctrlmetrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatal("controller-runtime's registry cannot describe itself")
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	all := map[string][]string{}
	for d := range descriptions {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		labels := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' })
		for i, label := range labels {
			if label == "namespace" {
				labels[i] = "exported_namespace"
			}
		}
		all[m[1]] = labels
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

// dashboard is the part of Grafana's model that the tests read.
type dashboard struct {
	Panels []struct {
		ID          int
		Type, Title string
		Description string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(config + "grafana/markdownview.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func queries(t *testing.T) []query {
	t.Helper()
	var all []query
	for _, rule := range rules(t) {
		all = append(all, query{"alert " + rule.Alert, rule.Expr.String()})
	}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*").Replace(target.Expr)
			all = append(all, query{"panel " + panel.Title, expr})
		}
	}
	return all
}

func TestEveryMetricAndLabelInAQueryExists(t *testing.T) {
	known := registered(t)
	for _, q := range queries(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
		if err != nil {
			t.Errorf("%s: %v in\n%s", q.where, err, q.expr)
			continue
		}
		for _, problem := range check(expr, known) {
			t.Errorf("%s: %s", q.where, problem)
		}
	}
}

// check returns those metrics and labels of an expression that the manager does not have.
func check(expr parser.Expr, known map[string][]string) []string {
	var problems []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			labels, ok := known[n.Name]
			if !ok {
				problems = append(problems, "there is no metric "+n.Name)
				break
			}
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(labels, m.Name) {
					problems = append(problems, n.Name+" has no label "+m.Name)
				}
			}
		case *parser.AggregateExpr:
			selector, ok := innermost(n.Expr)
			for _, label := range n.Grouping {
				if ok && !slices.Contains(known[selector], label) {
					problems = append(problems, selector+" cannot be grouped by "+label)
				}
			}
		}
		return nil
	})
	return problems
}

// innermost returns the only metric of an expression, or false if the expression has no metric or
// several.
func innermost(expr parser.Expr) (string, bool) {
	names := map[string]bool{}
	last := ""
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if n, ok := node.(*parser.VectorSelector); ok {
			names[n.Name], last = true, n.Name
		}
		return nil
	})
	return last, len(names) == 1
}

func TestTheCheckOfQueriesFindsWhatIsWrong(t *testing.T) {
	known := registered(t)
	for expr, want := range map[string]string{
		`markdownview_availabel`:                                "there is no metric",
		`markdownview_ready{namespace="x"}`:                     "has no label namespace",
		`max by (site) (markdownview_ready)`:                    "cannot be grouped by site",
		`sum by (name) (rate(markdownview_switches_total[5m]))`: "cannot be grouped by name",
	} {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(check(parsed, known), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: found %q, not %q", expr, got, want)
		}
	}
}

// quiet holds two hours of samples, one per minute, of two managers with two sites.
const quiet = `
load 1m
  leader_election_master_status{name="markdownview.view.koboshi.dev",pod="1"} 1x120
  leader_election_master_status{name="markdownview.view.koboshi.dev",pod="2"} 0x120
  markdownview_available{exported_namespace="a",name="up",pod="1"} 1x120
  markdownview_available{exported_namespace="a",name="up",pod="2"} 1x120
  markdownview_degraded{exported_namespace="a",name="up",pod="1"} 0x120
  markdownview_suspended{exported_namespace="a",name="up",pod="1"} 0x120
  markdownview_available{exported_namespace="a",name="asleep",pod="1"} 0x120
  markdownview_suspended{exported_namespace="a",name="asleep",pod="1"} 1x120`

func TestAlertsFireForWhatTheyAreFor(t *testing.T) {
	for _, tc := range []struct {
		name, load string
		want       []string
	}{
		{"all is well, one site is suspended", quiet, nil},
		{"nothing is scraped", "\nload 1m\n  up 0x120\n", []string{"MarkdownViewOperatorAbsent"}},
		{"no manager leads", `
load 1m
  leader_election_master_status{name="markdownview.view.koboshi.dev",pod="1"} 0x120
`, []string{"MarkdownViewOperatorAbsent"}},
		{"a site is not served", quiet + `
  markdownview_available{exported_namespace="b",name="down",pod="1"} 0x120
  markdownview_available{exported_namespace="b",name="down",pod="2"} 0x120
  markdownview_suspended{exported_namespace="b",name="down",pod="1"} 0x120
`, []string{"MarkdownViewUnavailable"}},
		{"one manager reports outdated data", quiet + `
  markdownview_available{exported_namespace="b",name="seen",pod="1"} 0x120
  markdownview_available{exported_namespace="b",name="seen",pod="2"} 1x120
`, nil},
		{"a suspended site of the same name in another namespace does not hide a site that is not served", quiet + `
  markdownview_available{exported_namespace="b",name="asleep",pod="1"} 0x120
  markdownview_suspended{exported_namespace="b",name="asleep",pod="1"} 0x120
`, []string{"MarkdownViewUnavailable"}},
		{"two managers see a degraded site", quiet + `
  markdownview_degraded{exported_namespace="b",name="worse",pod="1"} 1x120
  markdownview_degraded{exported_namespace="b",name="worse",pod="2"} 1x120
`, []string{"MarkdownViewDegraded"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := firing(t, tc.load); !slices.Equal(got, tc.want) {
				t.Errorf("firing: %v, want %v", got, tc.want)
			}
		})
	}
}

// firing returns the alerts that are true at the end of the loaded samples, one for each
// series.
func firing(t *testing.T, load string) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, load)
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, promqltest.DefaultMaxSamplesPerQuery)
	var all []string
	for _, rule := range rules(t) {
		q, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr.String(), time.Unix(0, 0).Add(2*time.Hour))
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		var result promql.Vector
		if result, err = q.Exec(t.Context()).Vector(); err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		for range result {
			all = append(all, rule.Alert)
		}
		q.Close()
	}
	return all
}

func TestEveryAlertExplainsItself(t *testing.T) {
	seen := map[string]bool{}
	for _, rule := range rules(t) {
		if seen[rule.Alert] {
			t.Errorf("%s exists twice", rule.Alert)
		}
		seen[rule.Alert] = true
		if rule.For == nil || *rule.For == "" {
			t.Errorf("%s has no duration", rule.Alert)
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

// handbook is the URL at which the pages of docs/guide/markdownview are published.
const handbook = "https://github.com/koboshi-dev/koboshi/blob/main/docs/guide/markdownview/"

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

// anchors returns the IDs that GitHub gives the headings of a page of the handbook.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(config + "../../../docs/guide/markdownview/" + page)
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

func TestThePanelsOfTheDashboardDoNotOverlap(t *testing.T) {
	ids := map[int]bool{}
	cells := map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] {
			t.Errorf("panel %d exists twice", p.ID)
		}
		ids[p.ID] = true
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
