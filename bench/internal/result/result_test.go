package result

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/bench/internal/stats"
)

func rounds(pairs ...[2]float64) (out []map[string]float64) {
	for _, p := range pairs {
		round := map[string]float64{}
		for i, name := range []string{"stock", "koboshi"} {
			if !math.IsNaN(p[i]) {
				round[name] = p[i]
			}
		}
		out = append(out, round)
	}
	return out
}

func TestARatioIsTakenWithinARound(t *testing.T) {
	nan := math.NaN()
	f := Figure{Rounds: rounds([2]float64{2, 1}, [2]float64{10, 4}, [2]float64{nan, 9}, [2]float64{5, nan}, [2]float64{4, 1}, [2]float64{0, 3})}
	// The quotient of the medians would be 3/4; the rounds give 0.5, 0.4 and 0.25.
	if diff := cmp.Diff(stats.Spread{N: 3, Min: 0.25, Median: 0.4, Max: 0.5}, f.Ratio("koboshi")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(stats.Spread{N: 5, Min: 1, Median: 3, Max: 9}, f.Values("koboshi")); diff != "" {
		t.Error(diff)
	}
}

func TestWorseDependsOnWhatIsBetter(t *testing.T) {
	for _, c := range []struct {
		name           string
		stock, koboshi float64
		more, want     bool
	}{
		{"takes longer", 1, 1.2, false, true},
		{"takes less", 1, 0.8, false, false},
		{"does fewer", 100, 80, true, true},
		{"does more", 100, 120, true, false},
		{"reads 1.00", 1, 1.004, false, false},
		{"reads 1.01", 1, 1.006, false, true},
		{"no failures", 0, 0, false, false},
		{"failures where stock has none", 0, 1, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Figure{More: c.more, Rounds: rounds([2]float64{c.stock, c.koboshi})}
			if got := f.Worse("koboshi"); got != c.want {
				t.Errorf("worse is %v, want %v", got, c.want)
			}
		})
	}
}

func TestNumbersKeepTheDigitsThatCount(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 2.4137: "2.41", 326.4: "326", 1234.5: "1234", 12.34: "12.3", 0.5: "0.500", 0.01234: "0.0123", 0.00001: "0.0000",
	} {
		if got := Short(v); got != want {
			t.Errorf("Short(%v) is %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0.00", 0.26: "0.26", 0.0123: "0.012", 0.00716: "0.0072", 0.0949: "0.095", 0.0951: "0.10", 1: "1.00", 12.5: "12.50", 250: "250"} {
		if got := Ratio(v); got != want {
			t.Errorf("Ratio(%v) is %s, want %s", v, got, want)
		}
	}
}

var invented = filepath.Join("..", "..", "testdata", "invented.json")

func TestTheTableIsAsAgreedAndFitsATerminal(t *testing.T) {
	r, err := Read(invented)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Table(&out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	golden := filepath.Join("..", "..", "testdata", "invented.txt")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s\nto accept it, run UPDATE=1 go test", diff)
	}
}

func TestAWrittenReportReadsTheSame(t *testing.T) {
	want, err := Read(invented)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
