package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/bench/internal/result"
)

func invented(t *testing.T) result.Report {
	t.Helper()
	r, err := result.Read(filepath.Join("..", "..", "testdata", "invented.json"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func draw(t *testing.T, r result.Report) []byte {
	t.Helper()
	svg, err := Draw(r)
	if err != nil {
		t.Fatal(err)
	}
	return svg
}

func TestTheSameReportGivesTheSameBytes(t *testing.T) {
	got := draw(t, invented(t))
	golden := filepath.Join("..", "..", "testdata", "invented.svg")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s\nto accept it, run UPDATE=1 go test", diff)
	}
}

func TestTheChartIsWellFormedWhateverTheLabels(t *testing.T) {
	r := invented(t)
	r.Comment = `<script>&"'`
	for decoder := xml.NewDecoder(bytes.NewReader(draw(t, r))); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
			t.Error("a comment became an element")
		}
	}
}

func TestWhatIsWorseIsSaidInWords(t *testing.T) {
	svg := string(draw(t, invented(t)))
	if n := strings.Count(svg, ">worse</tspan>"); n != 2 {
		t.Errorf("%d bars say worse, want those of memory and of creates with 1 client", n)
	}
	if !strings.Contains(svg, "creates, 1 client: 0.97 (0.87 to 0.98), worse than stock") {
		t.Error("the description does not say what is worse")
	}
}

func TestBarsBeginAtOneAndWhiskersStayInThePlot(t *testing.T) {
	all := []bar{{middle: 0.013, low: 0.011, top: 0.02}, {middle: 2.1, low: 1.9, top: 4}, {middle: 1, low: 1, top: 1}}
	s := newScale(all)
	one := s.x(1)
	for _, b := range all {
		d := b.place(s, 0)
		if d.X != one && d.X+d.Width != one {
			t.Errorf("the bar of %v goes from %v to %v, the line is at %v", b.middle, d.X, d.X+d.Width, one)
		}
		if d.Low < left || d.High > right || d.Low > d.High {
			t.Errorf("the whisker of %v goes from %v to %v", b.middle, d.Low, d.High)
		}
	}
}

func TestTicksEncloseAllBarsAndHoldOne(t *testing.T) {
	for _, c := range []struct {
		low, top float64
		want     []float64
	}{
		{0.9, 1.1, []float64{0.5, 1, 2}},
		{0.2, 2.1, []float64{0.2, 0.5, 1, 2, 5}},
		{0.011, 1.5, []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2}},
		{0.0011, 12, []float64{0.001, 0.01, 0.1, 1, 10}},
	} {
		s := newScale([]bar{{low: c.low, middle: c.low, top: c.top}})
		if diff := cmp.Diff(c.want, s.ticks); diff != "" {
			t.Errorf("%v to %v:\n%s", c.low, c.top, diff)
		}
		if s.low > c.low || s.top < c.top || !slices.Contains(s.ticks, 1) {
			t.Errorf("%v to %v: %+v", c.low, c.top, s)
		}
	}
}

func TestAReportWithoutRatiosIsNotDrawn(t *testing.T) {
	if svg, err := Draw(result.Report{Contestants: []string{"stock"}}); err == nil {
		t.Errorf("drew %s", svg)
	}
}
