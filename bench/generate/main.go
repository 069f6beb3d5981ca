// Command generate measures how long koboshi generate takes, compared with controller-gen
// called by make, as kubebuilder's documentation recommends. Both run in alternation, in
// projects with the same files.
//
//	cd bench && go run ./generate -rounds 9
//
// Programs are built and the caches of the go command are filled before anything is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/koboshi-dev/koboshi/bench/internal/command"
	"github.com/koboshi-dev/koboshi/bench/internal/contestant"
	"github.com/koboshi-dev/koboshi/bench/internal/machine"
	"github.com/koboshi-dev/koboshi/bench/internal/stats"
)

func main() { command.Main("generate", run) }

// bench holds what all rounds share.
type bench struct {
	rounds                  int
	root, koboshi, gen      string
	work                    string
	goCache                 string
	contests                []*contest
	project, again, operate *contest
}

// contest holds the seconds that both sides needed in each round.
type contest struct {
	name         string
	ours, theirs []float64
}

func (b *bench) contest(name string) *contest {
	c := &contest{name: name}
	b.contests = append(b.contests, c)
	return c
}

func run(ctx context.Context, args []string) error {
	var b bench
	f := flag.NewFlagSet("generate", flag.ContinueOnError)
	f.IntVar(&b.rounds, "rounds", 9, "number of rounds; in each round, each side runs once")
	f.StringVar(&b.root, "root", "..", "folder of the root module")
	f.StringVar(&b.koboshi, "koboshi", "", "the koboshi program (default: bin/koboshi of the root module)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if b.rounds < 1 || f.NArg() > 0 {
		return errors.New("-rounds must be at least 1, and no arguments are allowed; see -help")
	}
	if warning := machine.Warning(machine.Describe()); warning != "" {
		fmt.Fprintln(os.Stderr, "warning:", warning)
	}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.work) }()
	b.project = b.contest("new project")
	b.again = b.contest("new project, nothing changed")
	b.operate = b.contest("operators/storagebucket")
	// The first round fills the caches and is not counted.
	for n := range b.rounds + 1 {
		if err := b.round(ctx, n); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", n, b.rounds)
	}
	return b.table(os.Stdout)
}

// prepare finds the programs.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.root, err = filepath.Abs(b.root); err != nil {
		return err
	}
	if b.koboshi == "" {
		b.koboshi = filepath.Join(b.root, "bin", "koboshi")
	}
	if b.koboshi, err = filepath.Abs(b.koboshi); err != nil {
		return err
	}
	if _, err := os.Stat(b.koboshi); err != nil {
		return fmt.Errorf("finding the koboshi program: %w; run make build, or name the program with -koboshi", err)
	}
	if b.gen, err = contestant.ControllerGen(ctx, b.root); err != nil {
		return err
	}
	if b.goCache, err = contestant.GoEnv(ctx, b.root, "GOCACHE"); err != nil {
		return err
	}
	b.work, err = os.MkdirTemp("", "koboshi-bench-generate-")
	return err
}

// round runs each side once. The sides take turns in going first.
func (b *bench) round(ctx context.Context, n int) error {
	dir := filepath.Join(b.work, fmt.Sprint(n))
	defer func() { _ = os.RemoveAll(dir) }()
	sides := []func(context.Context, string) error{b.ours, b.theirs}
	for i := range sides {
		side := (i + n) % len(sides)
		if err := sides[side](ctx, filepath.Join(dir, fmt.Sprint(side))); err != nil {
			return err
		}
	}
	if n == 0 {
		for _, c := range b.contests {
			c.ours, c.theirs = nil, nil
		}
	}
	return nil
}

var (
	initProject = []string{"init", "--domain", "example.com", "--repo", "example.com/fleet"}
	createAPI   = []string{"create", "api", "--group", "sea", "--version", "v1", "--kind", "Ship"}
)

// ours measures koboshi, from an empty folder and an empty cache of fingerprints.
func (b *bench) ours(ctx context.Context, dir string) error {
	project, operator := filepath.Join(dir, "fleet"), filepath.Join(dir, "operator")
	if err := b.folders(project, operator); err != nil {
		return err
	}
	koboshi := func(args ...string) []string { return append([]string{b.koboshi}, args...) }
	return errors.Join(
		b.measure(ctx, &b.project.ours, project, koboshi(initProject...), koboshi(createAPI...), koboshi("generate")),
		b.measure(ctx, &b.again.ours, project, koboshi("generate")),
		b.measure(ctx, &b.operate.ours, operator, koboshi("generate")),
	)
}

// theirs measures make manifests generate alone: the project exists, and controller-gen is
// installed.
func (b *bench) theirs(ctx context.Context, dir string) error {
	project, operator := filepath.Join(dir, "fleet"), filepath.Join(dir, "operator")
	if err := b.folders(project, operator); err != nil {
		return err
	}
	for _, args := range [][]string{initProject, append(createAPI[:len(createAPI):len(createAPI)], "--make=false")} {
		if err := b.command(ctx, project, append([]string{b.koboshi}, args...)...); err != nil {
			return err
		}
	}
	generate := []string{"make", "manifests", "generate", "CONTROLLER_GEN=" + b.gen}
	return errors.Join(
		b.measure(ctx, &b.project.theirs, project, generate),
		b.measure(ctx, &b.again.theirs, project, generate),
		b.measure(ctx, &b.operate.theirs, operator, generate),
	)
}

// folders makes an empty folder and a copy of the operator.
func (b *bench) folders(project, operator string) error {
	if err := os.MkdirAll(project, 0o755); err != nil {
		return err
	}
	return os.CopyFS(operator, os.DirFS(filepath.Join(b.root, "operators", "storagebucket")))
}

// measure runs the commands, and appends the total time in seconds.
func (b *bench) measure(ctx context.Context, seconds *[]float64, dir string, commands ...[]string) error {
	start := time.Now()
	for _, command := range commands {
		if err := b.command(ctx, dir, command...); err != nil {
			return err
		}
	}
	*seconds = append(*seconds, time.Since(start).Seconds())
	return nil
}

// command runs a command. Fingerprints of koboshi are kept in a folder of the round.
func (b *bench) command(ctx context.Context, dir string, command ...string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(filepath.Dir(dir), "cache"), "GOCACHE="+b.goCache)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return nil
}

// table writes the medians, and the ratios, which are computed round by round.
func (b *bench) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "seconds, median of rounds\tkoboshi\tmake manifests generate\tratio (least to most)")
	for _, c := range b.contests {
		var ratios []float64
		for i := range c.ours {
			ratios = append(ratios, c.ours[i]/c.theirs[i])
		}
		ratio := stats.Of(ratios)
		_, _ = fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f (%.2f to %.2f)\n",
			c.name, stats.Of(c.ours).Median, stats.Of(c.theirs).Median, ratio.Median, ratio.Min, ratio.Max)
	}
	return t.Flush()
}
