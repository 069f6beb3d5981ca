// Command bench measures how long a plane takes to answer /readyz and how much
// memory it holds, against stock etcd and kube-apiserver built from the same
// modules and started by hand, in alternation on the same machine.
//
//	go run ./bench -rounds 7
//
// A figure of one run means little on a shared machine; the ratios, taken round
// by round, are what to quote.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"
)

// settle is how long a plane is left alone before its memory is read.
const settle = 3 * time.Second

// Sample is one start of one contestant.
type Sample struct {
	Ready time.Duration `json:"readyNanoseconds"` // from exec to the first 200 of /readyz
	RSS   int64         `json:"rssBytes"`         // of all its processes, settled
	Peak  int64         `json:"peakBytes"`        // the sum of their highest RSS
	PSS   int64         `json:"pssBytes"`         // RSS with shared pages divided
}

// A Contestant starts a control plane and tells its processes.
type Contestant struct {
	Name  string
	Start func(ctx context.Context, dir string) (*Running, error)
}

func main() {
	rounds := flag.Int("rounds", 7, "how often each contestant is started, after one warm-up")
	binary := flag.String("koboshi", "bin/koboshi", "the binary to measure")
	stock := flag.String("stock", "", "folder with stock etcd and kube-apiserver (default: build them)")
	output := flag.String("o", "", "json, for a script")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *rounds, *binary, *stock, *output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, binary, stock, output string) error {
	if rounds < 1 {
		return errors.New("-rounds must be at least 1")
	}
	work, err := os.MkdirTemp("", "koboshi-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	if stock == "" {
		stock = filepath.Join(work, "stock")
		if err := buildStock(ctx, stock); err != nil {
			return err
		}
	}
	contestants := []Contestant{
		{"stock", func(ctx context.Context, dir string) (*Running, error) { return startStock(ctx, stock, dir) }},
		{"koboshi api", koboshi(binary, "--profile=api", "--ephemeral")},
		{"koboshi full", koboshi(binary, "--profile=full", "--ephemeral")},
	}
	samples := map[string][]Sample{}
	for round := range rounds + 1 {
		for _, c := range contestants {
			s, err := measure(ctx, c, filepath.Join(work, fmt.Sprint(round), c.Name))
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", c.Name, round, err)
			}
			if round > 0 { // the first fills the page cache
				samples[c.Name] = append(samples[c.Name], s)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round, rounds)
	}
	if output == "json" {
		return json.NewEncoder(os.Stdout).Encode(samples)
	}
	report(contestants, samples)
	return nil
}

func measure(ctx context.Context, c Contestant, dir string) (s Sample, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, err
	}
	began := time.Now()
	r, err := c.Start(ctx, dir)
	if r != nil {
		defer r.Stop()
	}
	if err != nil {
		return s, err
	}
	s.Ready = time.Since(began)
	time.Sleep(settle)
	s.RSS, s.Peak, s.PSS, err = r.Memory()
	return s, err
}

func report(contestants []Contestant, samples map[string][]Sample) {
	base := samples[contestants[0].Name]
	row := "%-14s %-9s %9s %9s %9s   %s\n"
	fmt.Printf(row, "", "", "min", "median", "max", "median of ratios to "+contestants[0].Name)
	figure := func(name, unit string, scale float64, get func(Sample) float64) {
		for _, c := range contestants {
			var values, ratios []float64
			for i, s := range samples[c.Name] {
				values = append(values, get(s)/scale)
				ratios = append(ratios, get(s)/get(base[i]))
			}
			slices.Sort(values)
			slices.Sort(ratios)
			fmt.Printf(row, c.Name, name, fmt.Sprintf("%.2f", values[0]), fmt.Sprintf("%.2f", values[len(values)/2]),
				fmt.Sprintf("%.2f", values[len(values)-1])+unit,
				fmt.Sprintf("%.2f (%.2f to %.2f)", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1]))
		}
	}
	figure("/readyz", " s", float64(time.Second), func(s Sample) float64 { return float64(s.Ready) })
	figure("RSS", " MB", 1e6, func(s Sample) float64 { return float64(s.RSS) })
	figure("peak RSS", " MB", 1e6, func(s Sample) float64 { return float64(s.Peak) })
	figure("PSS", " MB", 1e6, func(s Sample) float64 { return float64(s.PSS) })
}
