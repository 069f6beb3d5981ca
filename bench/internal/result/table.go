package result

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// row formats figure, contestant, median, spread and ratio in at most 80 columns.
const row = "%-23s %-7s %7s %-15s %-18s %s"

// Table writes the report as text for a terminal.
func (r Report) Table(w io.Writer) error {
	t := table{w: w}
	t.line(row, "", "", "median", "(min-max)", "ratio to "+Baseline, "")
	for _, f := range r.Figures {
		label := strings.TrimSuffix(f.Label+", "+f.Unit, ", ")
		for _, c := range r.Contestants {
			if f.Values(c).N == 0 && f.Failed[c] == 0 && c != Baseline && len(r.Contestants) > 2 && f.measured() {
				continue // this contestant does not take part in this figure
			}
			t.figure(label, f, c)
			label = ""
		}
	}
	t.legend(r)
	return t.err
}

func (f Figure) measured() bool {
	for _, round := range f.Rounds {
		if len(round) > 0 {
			return true
		}
	}
	return false
}

type table struct {
	w   io.Writer
	err error
}

func (t *table) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (t *table) figure(label string, f Figure, contestant string) {
	v := f.Values(contestant)
	if v.N == 0 {
		t.line(row, label, contestant, "", "not measured", failures(f, contestant), "")
		return
	}
	ratio, mark := "", ""
	if r := f.Ratio(contestant); contestant != Baseline && r.N > 0 {
		ratio = fmt.Sprintf("%s (%s-%s)", Ratio(r.Median), Ratio(r.Min), Ratio(r.Max))
	}
	if contestant != Baseline && f.Worse(contestant) {
		mark = "worse"
	}
	t.line(row, label, contestant, Short(v.Median), fmt.Sprintf("(%s-%s)", Short(v.Min), Short(v.Max)), ratio, mark)
	if f.Failed[contestant] > 0 {
		t.line(row, "", "", "", failures(f, contestant), "", "")
	}
}

func failures(f Figure, contestant string) string {
	if n := f.Failed[contestant]; n > 0 {
		return fmt.Sprintf("failed in %d of %d rounds", n, len(f.Rounds))
	}
	return ""
}

// legend explains how to read the table, and prints the notes on the figures.
func (t *table) legend(r Report) {
	t.line("")
	t.line("%s", wrap("Rounds: "+strconv.Itoa(r.Rounds)+"; the median of all rounds is shown. A ratio is taken within each round; the median"+
		" and the extremes of the ratios are shown. Less is better, except where the figure is per second."))
	told := map[string]bool{}
	for _, f := range r.Figures {
		if f.Note != "" && !told[f.Note] {
			told[f.Note] = true
			t.line("%s", wrap(f.Note))
		}
	}
	if r.Comment != "" {
		t.line("%s", wrap(r.Comment))
	}
}

// wrap breaks a paragraph at spaces into lines of at most 80 columns.
func wrap(text string) string {
	const width = 80
	var out strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			out.WriteByte('\n')
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += len(word)
	}
	return out.String()
}

// Short formats a value with three significant digits, but never drops digits before the
// decimal point.
func Short(v float64) string {
	if v == 0 {
		return "0"
	}
	before := int(math.Floor(math.Log10(math.Abs(v)))) + 1
	return strconv.FormatFloat(v, 'f', min(max(3-before, 0), 4), 64)
}

// Ratio formats a quotient with two decimals, with more decimals if it is small, and with
// none if it is large.
func Ratio(v float64) string {
	decimals := 2
	switch {
	case v <= 0:
	case v < 0.0095:
		decimals = 4
	case v < 0.095:
		decimals = 3
	case v >= 99.5:
		decimals = 0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
