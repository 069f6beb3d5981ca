package verdict

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// tail is the maximum number of lines that the report shows for one failure. The message is at the
// start of a failure, and the cause is at its end.
const tail = 30

// A Suite holds the table of a suite and the durations of its runs.
type Suite struct {
	Name string
	Took [2][]time.Duration
	Table
}

// A Report holds the results of the suites.
type Report struct {
	Suites []*Suite
}

// Different reports whether a spec differs in a way that chance does not explain. It also returns
// true if there was nothing to compare.
func (r *Report) Different() bool {
	specs := 0
	for _, s := range r.Suites {
		specs += len(s.specs)
		for _, f := range s.Findings() {
			if f.Kind != Flaky {
				return true
			}
		}
	}
	return specs == 0
}

// Write prints the report as text.
func (r *Report) Write(w io.Writer) {
	fmt.Fprintf(w, "%-38s %6s %7s %6s %7s %8s %8s\n", "suite", "specs", "passed", "failed", "skipped", "stock", "koboshi")
	total, passed, kinds := 0, 0, map[Kind]int{}
	for _, s := range r.Suites {
		count := s.Count(Koboshi)
		skipped := count["skipped"] + count["pending"]
		failed := len(s.specs) - count["passed"] - skipped
		fmt.Fprintf(w, "%-38s %6d %7d %6d %7d %7.1fs %7.1fs\n", s.Name, len(s.specs), count["passed"], failed, skipped,
			s.Took[Stock][0].Seconds(), s.Took[Koboshi][0].Seconds())
		total, passed = total+len(s.specs), passed+count["passed"]
		for _, f := range s.Findings() {
			kinds[f.Kind]++
		}
	}
	fmt.Fprintln(w)
	for _, s := range r.Suites {
		for _, name := range s.Failing() {
			fmt.Fprintf(w, "%s with both stock and koboshi: %s: %s\n", s.specs[name][Stock][0].Word, s.Name, name)
		}
		for _, f := range s.Findings() {
			f.write(w, s.Name)
		}
	}
	fmt.Fprintf(w, "\n%d specs compared, %d passed with koboshi; %d differ, %d are flaky\n",
		total, passed, kinds[Worse]+kinds[Other], kinds[Flaky])
}

func (f Finding) write(w io.Writer, suite string) {
	fmt.Fprintf(w, "\n%s: %s: %s\n", f.Kind, suite, f.Name)
	for side, name := range [2]string{Stock: "stock", Koboshi: "koboshi"} {
		fmt.Fprintf(w, "  %-8s%s\n", name, tally(f.Outcomes[side]))
		for _, o := range f.Outcomes[side] {
			if o.Why != "" {
				fmt.Fprintln(w, indent(lastLines(o.Why)))
				break
			}
		}
	}
}

// tally formats counts such as "2 passed, 1 failed".
func tally(outcomes []Outcome) string {
	count := map[string]int{}
	for _, o := range outcomes {
		count[o.Word]++
	}
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[word], word))
	}
	return strings.Join(parts, ", ")
}

// lastLines keeps the first lines, which contain the position and the message, and the last
// lines.
func lastLines(s string) []string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) <= tail {
		return lines
	}
	kept := slices.Clone(lines[:tail/3])
	return append(append(kept, "..."), lines[len(lines)-tail*2/3:]...)
}

func indent(lines []string) string {
	return "    " + strings.Join(lines, "\n    ")
}
