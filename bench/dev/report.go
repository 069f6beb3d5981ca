package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/bench/internal/jsonfile"
	"github.com/koboshi-dev/koboshi/bench/internal/result"
	"github.com/koboshi-dev/koboshi/bench/internal/stats"
)

// most holds the ratios that Koboshi promises not to exceed.
var most = map[edit]float64{editBody: 0.5, editType: 0.75}

// report is one run of the benchmark. It contains nothing that identifies the machine or a
// person.
type report struct {
	Comment  string         `json:"comment,omitempty"`
	Date     string         `json:"date"`
	Machine  result.Machine `json:"machine"`
	Settings settings       `json:"settings"`
	Rounds   []round        `json:"rounds"`
}

// settings holds everything that affects the figures, except for the machine.
type settings struct {
	Versions map[string]string `json:"versions"`
	// CGO and GoFlags are variables of the go command. koboshi dev itself turns cgo off, unless
	// the variable is set in the environment.
	CGO     string `json:"cgoEnabled"`
	GoFlags string `json:"goFlags"`
}

// write writes the report to a file.
func (r *report) write(path string) error { return jsonfile.Write(path, r) }

// of computes a value for each turn of one loop, and returns the spread of these values over the
// rounds.
func (r *report) of(e edit, loop string, value func(turn) float64) stats.Spread {
	var values []float64
	for _, one := range r.Rounds {
		values = append(values, value(one[e][loop]))
	}
	return stats.Of(values)
}

// ratio returns the quotient of the medians, and the smallest and the largest quotient within a
// single round.
func (r *report) ratio(e edit) (median float64, rounds stats.Spread) {
	var values []float64
	for _, one := range r.Rounds {
		values = append(values, one[e][ours].Seconds/one[e][theirs].Seconds)
	}
	return r.of(e, ours, all).Median / r.of(e, theirs, all).Median, stats.Of(values)
}

func all(t turn) float64 { return t.Seconds }

// stages returns the names of all stages that occur in any round, in the order in which they first
// occur.
func (r *report) stages(e edit) (names []string) {
	for _, loop := range []string{theirs, ours} {
		for _, one := range r.Rounds {
			for _, s := range one[e][loop].Stages {
				if !slices.Contains(names, s.Name) {
					names = append(names, s.Name)
				}
			}
		}
	}
	return names
}

// printer formats rows of at most 80 columns.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(cells ...string) {
	if p.err != nil {
		return
	}
	var text strings.Builder
	for i, width := range []int{20, 22, 22, 0} {
		if i < len(cells) {
			fmt.Fprintf(&text, "%-*s", width, cells[i])
		}
	}
	_, p.err = fmt.Fprintln(p.w, strings.TrimRight(text.String(), " "))
}

// table writes the report as text for a terminal.
func (r *report) table(w io.Writer) error {
	p := &printer{w: w}
	p.line(fmt.Sprintf("seconds, median (min-max) of %d rounds, and the share of each stage", len(r.Rounds)))
	for _, e := range edits {
		p.line("")
		r.block(p, e)
	}
	if r.Comment != "" {
		p.line("")
		p.line(r.Comment)
	}
	return p.err
}

// block writes the lines of one kind of edit.
func (r *report) block(p *printer, e edit) {
	p.line(string(e)+" edit", "koboshi dev", "kubebuilder's loop", "ratio")
	median, rounds := r.ratio(e)
	p.line("save to reconciled", span(r.of(e, ours, all)), span(r.of(e, theirs, all)),
		fmt.Sprintf("%s (%s-%s)", result.Ratio(median), result.Ratio(rounds.Min), result.Ratio(rounds.Max)))
	for _, name := range r.stages(e) {
		label := name
		if name == stageBuild {
			label = "go build"
		}
		p.line("  "+label, r.share(e, ours, name), r.share(e, theirs, name))
	}
	word := "met"
	if median > most[e] {
		word = "MISSED"
	}
	p.line(fmt.Sprintf("target at most %v: %s", most[e], word))
}

func span(s stats.Spread) string {
	return fmt.Sprintf("%s (%s-%s)", result.Short(s.Median), result.Short(s.Min), result.Short(s.Max))
}

// share formats the median time of a stage, and the median of its share of the whole time.
func (r *report) share(e edit, loop, stage string) string {
	seconds := r.of(e, loop, func(t turn) float64 { return t.of(stage) }).Median
	if seconds == 0 {
		return ""
	}
	share := r.of(e, loop, func(t turn) float64 { return t.of(stage) / t.Seconds }).Median
	return fmt.Sprintf("%-5s %2.0f %%", result.Short(seconds), 100*share)
}
