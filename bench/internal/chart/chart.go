// Package chart draws the ratios of a report as an SVG. The same report always gives the
// same bytes.
package chart

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"

	"github.com/koboshi-dev/koboshi/bench/internal/result"
)

//go:embed chart.svg.tmpl
var drawing string

// These are positions in the SVG's own units.
const (
	width  = 800
	left   = 250 // start of the plot; the labels are to its left
	right  = 610 // end of the plot; the figures are to its right
	top    = 74
	rowGap = 24
	head   = 34 // for the heading of a group
	foot   = 56
)

// Draw renders the ratios of all contestants except the baseline on a logarithmic
// scale, so that the ratios 0.5 and 2 are equally far from the line at 1.
func Draw(r result.Report) ([]byte, error) {
	less, more := bars(r, false), bars(r, true)
	if len(less)+len(more) == 0 {
		return nil, errors.New("drawing the chart: the report has no ratio; measure koboshi and stock in the same run")
	}
	scale := newScale(append(append([]bar(nil), less...), more...))
	p := picture{Width: width, Left: left, Right: right, One: scale.x(1), Source: source(r)}
	y := float64(top)
	for _, g := range []struct {
		heading string
		bars    []bar
	}{{"less is better", less}, {"more is better", more}} {
		if len(g.bars) == 0 {
			continue
		}
		p.Headings = append(p.Headings, heading{g.heading, y + 16})
		y += head
		for _, b := range g.bars {
			p.Rows = append(p.Rows, b.place(scale, y))
			y += rowGap
		}
	}
	p.Bottom, p.Height = y, y+foot
	for _, t := range scale.ticks {
		p.Ticks = append(p.Ticks, tick{scale.x(t), strconv.FormatFloat(t, 'f', -1, 64), t == 1})
	}
	p.Description = description(p.Rows)
	return p.render()
}

// A bar is a ratio that has no position in the plot yet.
type bar struct {
	label            string
	low, middle, top float64
	worse            bool
}

func bars(r result.Report, more bool) (found []bar) {
	for _, f := range r.Figures {
		for _, c := range r.Contestants {
			ratio := f.Ratio(c)
			// Zero has no position on a logarithmic scale.
			if f.More != more || c == result.Baseline || ratio.N == 0 || ratio.Min <= 0 {
				continue
			}
			label := f.Label
			if c != "koboshi" {
				label += " (" + c + ")"
			}
			found = append(found, bar{label, ratio.Min, ratio.Median, ratio.Max, f.Worse(c)})
		}
	}
	return found
}

func (b bar) place(s scale, y float64) drawn {
	d := drawn{
		Label: b.label, Value: result.Ratio(b.middle), Y: y, Worse: b.worse,
		Low: s.x(b.low), High: s.x(b.top),
		Text: fmt.Sprintf("%s (%s to %s)", result.Ratio(b.middle), result.Ratio(b.low), result.Ratio(b.top)),
	}
	from, to := s.x(1), s.x(b.middle)
	d.X, d.Width = min(from, to), max(math.Abs(from-to), 1)
	return d
}

// A scale maps ratios to positions in the plot. Its axis runs from the first tick to the last.
type scale struct {
	ticks    []float64
	low, top float64
}

// newScale chooses ticks at 1, 2 and 5 in each decade, from the last tick below the bars to
// the first tick above them.
func newScale(bars []bar) scale {
	low, top := 0.5, 2.0
	for _, b := range bars {
		low, top = min(low, b.low), max(top, b.top)
	}
	var ticks []float64
	for exponent := -6; exponent <= 6; exponent++ {
		for _, digit := range []float64{1, 2, 5} {
			// The tick is parsed from text, because 5 times a computed power of ten may
			// not be exactly 0.05.
			t, _ := strconv.ParseFloat(fmt.Sprintf("%ge%d", digit, exponent), 64)
			switch {
			case t <= low: // keep only the last tick below the bars
				ticks = []float64{t}
			case len(ticks) == 0 || ticks[len(ticks)-1] < top:
				ticks = append(ticks, t)
			}
		}
	}
	return scale{thin(ticks), ticks[0], ticks[len(ticks)-1]}
}

// thin keeps only the powers of ten if there are so many ticks that labels would collide.
func thin(ticks []float64) (kept []float64) {
	if len(ticks) <= 9 {
		return ticks
	}
	for _, t := range ticks {
		if strings.Trim(strconv.FormatFloat(t, 'f', -1, 64), "0.") == "1" {
			kept = append(kept, t)
		}
	}
	return kept
}

func (s scale) x(ratio float64) float64 {
	share := math.Log(ratio/s.low) / math.Log(s.top/s.low)
	return left + share*(right-left)
}

func source(r result.Report) string {
	return fmt.Sprintf("%s, rounds: %d, cores: %d, %s/%s, Kubernetes %s. %s",
		r.Date, r.Rounds, r.Machine.Cores, r.Machine.OS, r.Machine.Arch, r.Versions["kubernetes"], r.Comment)
}

// description returns the text for screen readers.
func description(rows []drawn) string {
	var parts []string
	for _, d := range rows {
		text := d.Label + ": " + d.Text
		if d.Worse {
			text += ", worse than stock"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ") + "."
}

// The template's data.
type (
	picture struct {
		Width, Left, Right  int
		Height, Bottom, One float64
		Source, Description string
		Headings            []heading
		Rows                []drawn
		Ticks               []tick
	}
	heading struct {
		Text string
		Y    float64
	}
	tick struct {
		X     float64
		Label string
		One   bool
	}
	drawn struct {
		Label, Value, Text     string
		X, Y, Width, Low, High float64
		Worse                  bool
	}
)

func (p picture) render() ([]byte, error) {
	t, err := template.New("chart").Funcs(template.FuncMap{
		"xml": escape,
		// One decimal is more precise than a screen, and gives the same text on every
		// machine.
		"n":   func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) },
		"add": func(v, by float64) float64 { return v + by },
	}).Parse(drawing)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("drawing the chart: %w", err)
	}
	return out.Bytes(), nil
}

func escape(text string) (string, error) {
	var out strings.Builder
	err := xml.EscapeText(&out, []byte(text))
	return out.String(), err
}
