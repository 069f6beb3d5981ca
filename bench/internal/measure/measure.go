// Package measure holds the measures of the benchmark. Each measure is a list of figures
// and a procedure that yields a value for each figure. Each run of a measure is a separate
// process, because go test also runs the tests of each package in a separate process.
package measure

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/koboshi-dev/koboshi/bench/internal/contestant"
	"github.com/koboshi-dev/koboshi/bench/internal/family"
	"github.com/koboshi-dev/koboshi/bench/internal/footprint"
)

// startTimeout limits each start and each stop of one process. With envtest's default of
// 20 s, a slow machine would yield failures instead of figures.
const startTimeout = 60 * time.Second

// settle is the pause before the memory of a control plane is read.
const settle = 3 * time.Second

// A Figure is one quantity that a measure yields.
type Figure struct {
	Name, Label, Unit string
	More              bool
	Note              string
}

// A Measure yields one value for each of its figures in every run.
type Measure struct {
	Name    string // for -only
	Figures []Figure
	// Timeout limits one run.
	Timeout time.Duration

	run func(context.Context, Bout) (Values, error)
}

// Values maps the name of a figure to a value in the figure's unit.
type Values map[string]float64

// A Bout is one run of one measure by one contestant. It holds everything that the
// process of the bout needs.
type Bout struct {
	Measure    string
	Contestant string
	Assets     string // the folder with etcd, kube-apiserver and kubectl
	Mark       string // identifies the processes of the benchmark; see family.Family
	Work       string // the folder of the benchmark, to be removed at the end
	Verbose    bool   // whether the components' logs go to stderr
	// Binary is Koboshi's program, Root the folder of its module, and ResetTest the built
	// benchmark of Reset. Only the measures that go beyond envtest need them.
	Binary, Root, ResetTest string
}

// All lists every measure, in the order of the table.
var All = []Measure{start, roundtrip, memory, creates, latency, tenAtOnce, reset, up}

// Lookup finds a measure by name.
func Lookup(name string) (Measure, error) {
	i := slices.IndexFunc(All, func(m Measure) bool { return m.Name == name })
	if i < 0 {
		var names []string
		for _, m := range All {
			names = append(names, m.Name)
		}
		return Measure{}, fmt.Errorf("no measure is named %q; choose from %v", name, names)
	}
	return All[i], nil
}

// Run runs the bout's measure in this process.
func Run(ctx context.Context, b Bout) (Values, error) {
	if b.Measure == packageName {
		return Values{}, onePackage(ctx, b)
	}
	m, err := Lookup(b.Measure)
	if err != nil {
		return nil, err
	}
	return m.run(ctx, b)
}

func (b Bout) stock() bool { return b.Contestant == contestant.Stock }

// An environment is an envtest environment, configured as a user would configure it.
type environment struct{ *envtest.Environment }

func (b Bout) environment() environment {
	env := &envtest.Environment{
		BinaryAssetsDirectory:    b.Assets,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  startTimeout,
	}
	if b.Verbose {
		env.ControlPlane.Etcd = &envtest.Etcd{Out: os.Stderr, Err: os.Stderr}
		server := env.ControlPlane.GetAPIServer()
		server.Out, server.Err = os.Stderr, os.Stderr
	}
	return environment{env}
}

// started starts an environment. The configuration that it returns does not limit the
// rate of requests.
func (b Bout) started() (environment, *rest.Config, error) {
	env := b.environment()
	config, err := env.Start()
	if err != nil {
		return env, nil, fmt.Errorf("starting the environment: %w", err)
	}
	return env, unlimited(config), nil
}

func unlimited(config *rest.Config) *rest.Config {
	free := rest.CopyConfig(config)
	free.QPS, free.RateLimiter = -1, nil
	return free
}

// stop ends the environment. It stores its error in first if first holds no error yet.
func (e environment) stop(first *error) {
	if err := e.Stop(); err != nil && *first == nil {
		*first = fmt.Errorf("stopping the environment: %w", err)
	}
}

// settled waits for a moment, and then reads the memory of everything that this run has
// started.
func (b Bout) settled(ctx context.Context, before footprint.Files) (footprint.Memory, error) {
	if err := pause(ctx, settle); err != nil {
		return footprint.Memory{}, err
	}
	members, err := family.Family{Root: os.Getpid(), Mark: b.Mark}.Members()
	if err != nil {
		return footprint.Memory{}, err
	}
	var pids []int
	for _, p := range members {
		pids = append(pids, p.PID)
	}
	if len(pids) == 0 {
		return footprint.Memory{}, fmt.Errorf("reading memory: the environment is running, but none of its processes were found")
	}
	return footprint.Take(before, pids)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func seconds(d time.Duration) float64      { return d.Seconds() }
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func megabytes(n int64) float64            { return float64(n) / 1e6 }
