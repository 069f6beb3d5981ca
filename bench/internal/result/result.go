// Package result holds the results of a run of the benchmark: the samples of every round,
// and a description of the machine. Tables and charts are made from a Report alone.
package result

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/koboshi-dev/koboshi/bench/internal/jsonfile"
	"github.com/koboshi-dev/koboshi/bench/internal/stats"
)

// Baseline names the contestant with which the others are compared.
const Baseline = "stock"

// A Report is one run of the benchmark. It contains nothing that identifies the machine or
// a person.
type Report struct {
	// Comment explains to readers what limits the value of the figures.
	Comment     string            `json:"comment,omitempty"`
	Date        string            `json:"date"`
	Machine     Machine           `json:"machine"`
	Versions    map[string]string `json:"versions"`
	Rounds      int               `json:"rounds"`
	Contestants []string          `json:"contestants"`
	Figures     []Figure          `json:"figures"`
}

// Machine describes the properties of the machine that affect the figures.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Kernel string `json:"kernel"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int64  `json:"memoryBytes"`
	Go     string `json:"go"`
	// Load is the average load in the minute before the run. If it exceeds Cores,
	// another program was using the machine.
	Load float64 `json:"loadBefore"`
}

// A Figure is one quantity with all of its samples.
type Figure struct {
	Name  string `json:"name"` // for -only, scripts and the chart
	Label string `json:"label"`
	Unit  string `json:"unit"`
	// More reports whether a larger value is better.
	More bool `json:"moreIsBetter,omitempty"`
	// Note explains the label.
	Note string `json:"note,omitempty"`
	// Rounds holds one value per contestant for each round. A contestant that failed, or
	// does not take part, has no value.
	Rounds []map[string]float64 `json:"rounds"`
	// Failed counts the rounds without a value, per contestant.
	Failed map[string]int `json:"failed,omitempty"`
}

// Values returns the spread of the contestant's values.
func (f Figure) Values(contestant string) stats.Spread {
	var values []float64
	for _, round := range f.Rounds {
		if v, ok := round[contestant]; ok {
			values = append(values, v)
		}
	}
	return stats.Of(values)
}

// Ratio compares the contestant with the baseline round by round, so that both sides
// of each quotient were measured within the same minutes.
func (f Figure) Ratio(contestant string) stats.Spread {
	var ratios []float64
	for _, round := range f.Rounds {
		value, ok := round[contestant]
		if base := round[Baseline]; ok && base > 0 {
			ratios = append(ratios, value/base)
		}
	}
	return stats.Of(ratios)
}

// Worse reports whether the contestant is worse than the baseline when the ratio is rounded
// to two decimals.
func (f Figure) Worse(contestant string) bool {
	r := f.Ratio(contestant)
	if r.N == 0 { // the baseline is zero, as the number of failures should be
		value, base := f.Values(contestant), f.Values(Baseline)
		return value.N > 0 && base.N > 0 && (value.Max > base.Max) != f.More && value.Max != base.Max
	}
	if f.More {
		return r.Median < 0.995
	}
	return r.Median >= 1.005
}

// Read reads a report from a file.
func Read(path string) (r Report, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("reading a report: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("reading the report %s: %w", path, err)
	}
	return r, nil
}

// Write writes the report to a file.
func (r Report) Write(path string) error { return jsonfile.Write(path, r) }
