// Command served measures how long it takes until readers get a new site, and until they get an
// edit. The command compares each of these times with the time until a plain Deployment of the same
// viewer is Ready; the measurements of sites and Deployments alternate on the same plane. The
// command also counts failed requests while a site is edited.
//
// A single figure means little on a shared machine; quote the ratios. The command needs
// Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/koboshi-dev/koboshi/operators/markdownview/bench/internal/figures"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/readers"
)

// atMost is the maximum time of a new site or an edit, as a multiple of the time of a plain
// Deployment.
const atMost = 1.5

type options struct {
	rounds, replicas, pages, edits int
	seed                           uint64
	output                         string
}

// Report holds the measurements. Times are in seconds.
type Report struct {
	figures.Conditions
	Rounds   int    `json:"rounds"`
	Replicas int    `json:"replicas"`
	Pages    int    `json:"pages"`
	Seed     uint64 `json:"seed"`

	Plain       figures.Summary `json:"plain"`
	Served      figures.Summary `json:"served"`
	Edited      figures.Summary `json:"edited"`
	ServedRatio float64         `json:"servedRatio"`
	EditedRatio float64         `json:"editedRatio"`
	Edits       int             `json:"edits"`
	Readers     readers.Report  `json:"readers"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log.SetLogger(zap.New(zap.WriteTo(io.Discard))) // hides the logs of the libraries; errors are returned
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "served:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	var o options
	f := flag.NewFlagSet("served", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 9, "number of measurements of each kind; medians are reported")
	f.IntVar(&o.replicas, "replicas", 2, "number of viewers of each site, 1 to 5")
	f.IntVar(&o.pages, "pages", 20, "number of pages of each site")
	f.IntVar(&o.edits, "edits", 10, "number of edits while readers send requests")
	f.Uint64Var(&o.seed, "seed", 1, "seed for the random pauses of up to a second before the measurements")
	f.StringVar(&o.output, "o", "", "file to write all figures to, in JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 || o.rounds < 1 || o.replicas < 1 || o.replicas > 5 || o.pages < 2 || o.edits < 1 {
		return errors.New("no arguments are allowed; -rounds and -edits must be at least 1, -pages at least 2, and -replicas 1 to 5; see -h")
	}
	report, err := measure(ctx, o)
	if err != nil {
		return err
	}
	report.table(out)
	return figures.Write(o.output, report)
}

// table writes the report as a table, at most 80 columns wide.
func (r *Report) table(out io.Writer) {
	fmt.Fprintf(out, "%s\n%d rounds, %d viewers, %d pages, seed %d\n\n", &r.Conditions, r.Rounds, r.Replicas, r.Pages, r.Seed)
	fmt.Fprintf(out, "%-44s%12s%12s%12s\n", "seconds", "median", "least", "most")
	for _, row := range []struct {
		label string
		s     figures.Summary
	}{
		{"plain Deployment: created to all Ready", r.Plain},
		{"MarkdownView: created to first page served", r.Served},
		{"edit: patched to new pages served", r.Edited},
	} {
		fmt.Fprintf(out, "%-44s%12.2f%12.2f%12.2f\n", row.label, row.s.Median, row.s.Least, row.s.Most)
	}
	fmt.Fprintf(out, "\nLimits\n")
	for _, row := range []struct {
		label      string
		is, atMost float64
	}{
		{"created to served / plain, at most 1.5", r.ServedRatio, atMost},
		{"edited to served / plain, at most 1.5", r.EditedRatio, atMost},
		{fmt.Sprintf("failed of %d requests in %d edits", r.Readers.Requests, r.Edits), float64(r.Readers.Failed), 0},
		{"responses with two editions, or an older one", float64(r.Readers.Mixed), 0},
	} {
		fmt.Fprintf(out, "  %-54s%12.2f%12s\n", row.label, row.is, figures.Verdict(row.is, row.atMost))
	}
	fmt.Fprintf(out, "Readers that keep several connections open saw %d pages of an older edition.\n", r.Readers.Returned)
	if len(r.Readers.Told) > 0 {
		fmt.Fprintln(out, strings.Join(r.Readers.Told, "\n"))
	}
}
