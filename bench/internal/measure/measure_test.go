package measure

import (
	"strings"
	"testing"
)

func TestEachFigureHasANameOfItsOwnAndFitsItsColumn(t *testing.T) {
	const column = 23 // of the table
	seen := map[string]string{}
	for _, m := range All {
		if m.Timeout <= 0 || len(m.Figures) == 0 || m.run == nil {
			t.Errorf("measure %s: timeout %s, %d figures; it could hang, or yield nothing", m.Name, m.Timeout, len(m.Figures))
		}
		for _, f := range m.Figures {
			if other, known := seen[f.Name]; known {
				t.Errorf("%s and %s both yield %s", m.Name, other, f.Name)
			}
			seen[f.Name] = m.Name
			if heading := strings.TrimSuffix(f.Label+", "+f.Unit, ", "); len(heading) > column {
				t.Errorf("%q has %d columns, more than %d", heading, len(heading), column)
			}
		}
	}
}

func TestAnUnknownMeasureIsRefusedWithThoseThereAre(t *testing.T) {
	_, err := Lookup("speed")
	if err == nil {
		t.Fatal("speed is measured")
	}
	for _, m := range All {
		if !strings.Contains(err.Error(), m.Name) {
			t.Errorf("%v: does not name %s", err, m.Name)
		}
		if found, err := Lookup(m.Name); err != nil || found.Name != m.Name {
			t.Errorf("%s: found %q, %v", m.Name, found.Name, err)
		}
	}
}

func TestStockAndKoboshiAreGivenTheSameCRDAfresh(t *testing.T) {
	one, other := widgetCRD(), widgetCRD()
	one.Spec.Names.Kind = "Changed"
	if other.Spec.Names.Kind != "Widget" {
		t.Error("a change by envtest in one CRD shows in the next")
	}
}
