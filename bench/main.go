// Command bench compares Koboshi with stock etcd and kube-apiserver. Koboshi and stock run
// behind controller-runtime's envtest, in alternation on the same machine.
//
//	cd bench && go run . -rounds 7 -o ../docs/bench/bench.json
//	cd bench && go run . -chart ../docs/bench/bench.json
//
// A figure of one run means little on a shared machine. Quote the ratios, which are
// computed round by round. The program needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/bench/internal/chart"
	"github.com/koboshi-dev/koboshi/bench/internal/command"
	"github.com/koboshi-dev/koboshi/bench/internal/result"
	"github.com/koboshi-dev/koboshi/bench/internal/worker"
)

func main() { command.Main("bench", run) }

func run(ctx context.Context, args []string) error {
	if len(args) == 2 && args[0] == worker.Argument {
		return worker.Main(ctx, args[1], os.Stdin, os.Stdout)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.chart != "" {
		return draw(o.chart)
	}
	report, err := tournament(ctx, o)
	if err != nil {
		return err
	}
	if o.output != "" {
		if err := report.Write(o.output); err != nil {
			return err
		}
	}
	if err := report.Table(os.Stdout); err != nil {
		return err
	}
	return missing(report)
}

// options holds the flags.
type options struct {
	rounds              int
	only                []string
	koboshi, stock      string // folders of assets; if empty, the program finds or builds them
	verbose             bool
	binary, root        string
	output, date, chart string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := ""
	f.IntVar(&o.rounds, "rounds", 7, "number of times that each measure is taken, not counting one warm-up")
	f.StringVar(&only, "only", "", "measures to take, separated by commas: start (and stop), roundtrip, memory,\ncreates, watch, ten, reset, up (default: all)")
	f.StringVar(&o.koboshi, "koboshi", "", "folder with Koboshi's etcd, kube-apiserver and kubectl\n(default: what koboshi envtest path prints)")
	f.StringVar(&o.stock, "stock", "", "folder with stock etcd, kube-apiserver and kubectl\n(default: build them into bin/stock of the root module)")
	f.StringVar(&o.binary, "binary", "", "the koboshi program (default: bin/koboshi of the root module)")
	f.StringVar(&o.root, "root", "..", "folder of the root module")
	f.StringVar(&o.output, "o", "", "file to write all samples to, as JSON")
	f.StringVar(&o.date, "date", time.Now().UTC().Format(time.DateOnly), "date to write into the JSON")
	f.StringVar(&o.chart, "chart", "", "JSON file to draw as a chart, into an SVG file next to it; nothing is measured")
	f.BoolVar(&o.verbose, "v", false, "show the components' logs")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; see -help", f.Arg(0))
	}
	if o.rounds < 1 {
		return o, errors.New("-rounds must be at least 1")
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if o.root, err = filepath.Abs(o.root); err != nil {
		return o, err
	}
	if o.binary == "" {
		o.binary = filepath.Join(o.root, "bin", "koboshi")
	}
	for _, path := range []*string{&o.koboshi, &o.stock, &o.binary} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return o, err
		}
	}
	return o, nil
}

// draw writes the chart next to the file with its figures.
func draw(path string) error {
	report, err := result.Read(path)
	if err != nil {
		return err
	}
	svg, err := chart.Draw(report)
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(path, filepath.Ext(path))+".svg", svg, 0o644)
}

// missing returns an error if a run lacks a figure, so that scripts notice the failure. It
// ignores the measure reset if this build of Koboshi does not support it.
func missing(r result.Report) error {
	var names []string
	for _, f := range r.Figures {
		for contestant, n := range f.Failed {
			if n > 0 && f.Values(contestant).N == 0 {
				names = append(names, contestant+": "+f.Label)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was measured for %s; the errors are shown above, and -v also shows the components' logs", strings.Join(names, "; "))
}
