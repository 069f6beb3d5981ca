package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
	"github.com/koboshi-dev/koboshi/internal/programs/unpack"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// defaultFindings is the folder for findings. The next check first injects the faults of
// the findings in this folder.
const defaultFindings = ".koboshi/findings"

// checkFlags holds the flags of koboshi check as given.
type checkFlags struct {
	// what is checked
	project   project.Options // includes the command after --
	scenarios []string
	driver    driverFlags
	run       []string
	values    map[string][]string // the values of subjectFlags that were given
	flags     *pflag.FlagSet      // the flags of an earlier check, once parsed
	// how it is checked
	profile     string
	oldServer   bool
	config      string
	kubernetes  string
	seed        uint64
	budget      time.Duration
	horizon     time.Duration
	shard       string
	workers     int
	stopAtFirst bool
	kinds       []string
	// what is reported
	output                  []string
	findings                string
	planOnly                bool
	inputs, paths           bool
	inputsAsked, pathsAsked bool // whether the user has set --inputs, and --paths
	strict                  bool
	// updateBudget writes the numbers of requests to the settings, instead of comparing them.
	updateBudget bool
	upgrade      string
	verbose      bool
	cluster      clusterFlags
	// how it ends
	maxInconclusive float64
	resume          bool
	hurry           <-chan struct{} // see secondSignal
}

func newCheck(stdio Stdio) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [flags] [-- controller args...]",
		Short: "Inject faults at every write of a controller, and check that it recovers",
		Long: `Inject faults at every write of a controller, and check that it recovers.

A project with kubebuilder's layout needs no preparation: Koboshi builds the
manager, starts control planes, installs CRDs, RBAC and webhooks from config/,
and generates scenarios from config/samples and the schemas of the CRDs.

Koboshi observes the controller without faults, and then runs it many times with
one fault in each run. The faults include kills before and after a write,
graceful exits, lost responses, conflicts, errors, refusals, lagging watches,
outages of the API server, changes while the controller is down, and deletions by
another client.

If the project has a test suite for a cluster, such as one for chainsaw, kuttl or
go test, use it instead of scenarios: name its command with --driver. The suite
uses the cluster directly, and must pass whatever happens to the controller.

If the project does not have kubebuilder's layout, or the controller is not
written in Go, give the controller's command after --, and name the CRDs and
scenarios with flags. The controller finds the cluster through KUBECONFIG or
~/.kube/config.

The controller sees neither your home directory nor your environment. Pass the
variables that it needs with --env.

An installation in any other form, such as the output of helm template, is read
with --manifests, and a chart with --helm. The service account, the arguments,
the environment and the volumes are then those of the controller's Deployment.

A finding is a failure of the controller to recover from a fault. Before Koboshi
reports a finding, it repeats the run several times, with and without the fault.
Koboshi saves each finding to a file that "koboshi check replay" can read, and
the next check injects the faults of saved findings first.

A check that is interrupted reports its results so far. With --resume, the next
check continues where the interrupted check ended.

Exit code: 0 if there are no findings, 1 if there are findings, 2 if the check
could not be done, was interrupted, or has too many inconclusive runs, or if the
controller did none of its work.`,
		Example: `  koboshi check
  koboshi check --budget 2m -o junit=report.xml -o html=report.html
  koboshi check --shard 1/4 -o json=part-1.json
  koboshi check --crds crds/ --scenario create.yaml -- python3 controller.py
  koboshi check --driver 'chainsaw test --parallel 1 tests/e2e'
  helm template chart | koboshi check --manifests - --samples cr/ -- ./manager
  koboshi check replay .koboshi/findings/DIVERGED-life-create-3f2a9c1b7d40.json
  koboshi check report part-1.json part-2.json
  koboshi check --on-cluster --image ghcr.io/example/operator-check:v1 --shards 8
  koboshi check scenarios --output-dir scenarios
  koboshi check import tests/e2e --output-dir scenarios`,
		Args: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at > 0 || at < 0 && len(args) > 0 {
				return usageError{fmt.Errorf("%q is not a flag; put the controller's command after -- (see %s --help)", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.project.Command = args
			if err := f.cluster.combine(cmd.Flags(), args); err != nil {
				return usageError{err}
			}
			if f.cluster.on {
				return f.checkOnCluster(cmd.Context(), cmd.Flags(), stdio)
			}
			return f.execute(cmd.Context(), cmd.Flags(), stdio)
		},
	}
	f.register(cmd.Flags())
	f.cluster.register(cmd.Flags())
	cmd.AddCommand(newCheckReplay(stdio), newCheckReport(stdio), newCheckScenarios(stdio), newCheckImport(stdio), newCheckSchema(stdio), newCheckLab(stdio), newCheckPod(stdio))
	return cmd
}

func (f *checkFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.project.Dir, "dir", ".", "folder of the project")
	fs.StringVar(&f.project.Main, "main", "", "folder of the manager's main package (default: detected automatically)")
	fs.StringVar(&f.project.Kustomization, "kustomization", "", "folder of the kustomization that installs the whole project (default: config/default); not with --manifests or --helm")
	fs.StringArrayVar(&f.project.Manifests, "manifests", nil, "file or folder with the complete installation, or - for standard input; may be repeated")
	fs.StringVar(&f.project.Helm, "helm", "", "folder or archive of a Helm chart that installs the controller; --manifests adds to it")
	fs.StringArrayVarP(&f.project.Values, "values", "f", nil, "file with values for the chart; may be repeated")
	fs.StringArrayVar(&f.project.Set, "set", nil, "PATH=VALUE to set a value of the chart; values are not saved; may be repeated")
	fs.StringVar(&f.project.Deployment, "deployment", "", "workload that runs the controller, as NAME or NAMESPACE/NAME (default: detected automatically)")
	fs.StringVar(&f.project.CRDs, "crds", "", "file or folder with CustomResourceDefinitions, instead of those of the installation")
	fs.StringVar(&f.project.RBAC, "rbac", "", "file or folder with the controller's service account, roles and bindings, instead of those of the installation")
	fs.StringVar(&f.project.Webhooks, "webhooks", "", "file or folder with webhook configurations, instead of those of the installation")
	fs.IntVar(&f.project.WebhookPort, "webhook-port", 0, "port on which the controller serves webhooks (default: detected automatically, or 9443)")
	fs.StringArrayVar(&f.project.WithCRDs, "with-crds", nil, "file or folder with CustomResourceDefinitions of other projects, to add to the installation; may be repeated")
	fs.StringArrayVar(&f.project.Given, "given", nil, "file or folder with other objects to add to the installation; may be repeated")
	fs.StringArrayVar(&f.project.StubSecrets, "stub-secret", nil, "NAMESPACE/NAME=KEY,... of a Secret to create with placeholder values (default keys: those that the controller's Pod uses); may be repeated")
	fs.StringArrayVar(&f.project.StubConfigMaps, "stub-configmap", nil, "NAMESPACE/NAME=KEY,... of a ConfigMap to create with placeholder values; may be repeated")
	fs.StringVar(&f.project.Samples, "samples", "", "file or folder with samples (default: config/samples)")
	fs.StringArrayVar(&f.project.Args, "args", nil, "argument to add to the manager's command line; may be repeated")
	fs.BoolVar(&f.project.ArgsOnly, "args-only", false, "ignore the arguments in the manager's Deployment, if there is one")
	fs.StringArrayVar(&f.project.Env, "env", nil, "NAME=VALUE to add to the controller's environment, or NAME to pass a variable of your environment; values are not saved; may be repeated")
	fs.StringArrayVar(&f.project.Election, "election", nil, "argument that makes the controller use leader election (default: detected automatically); may be repeated")
	fs.StringArrayVar(&f.scenarios, "scenario", nil, "scenario file, or folder of them, to use instead of scenarios generated from samples; may be repeated")
	f.driver.register(fs)
	fs.StringArrayVar(&f.run, "run", nil, "IMAGE=PATH: run the program PATH for Pods with this image, as koboshi up does; may be repeated")
	fs.StringVar(&f.config, "config", "", "file with the project's settings (default: koboshi.yaml in the project's folder, if it exists)")
	fs.StringVar(&f.profile, "profile", "", "Kubernetes controllers to run in the control plane: api, gc, workloads or full (default: chosen from the controller's RBAC rules)")
	fs.BoolVar(&f.oldServer, "old-server", false, "make the API server refuse streaming lists, as old versions do, so that it may return stale lists")
	fs.StringVar(&f.kubernetes, "kubernetes", "", kubernetesUsage())
	fs.Uint64Var(&f.seed, "seed", 0, "seed for all random choices (default: a new seed, which is printed)")
	fs.DurationVar(&f.budget, "budget", 0, "time limit for the whole check, not counting the build of the manager, such as 2m (default: none)")
	fs.DurationVar(&f.horizon, "horizon", check.DefaultHorizon, "how long to watch the controller at rest without a fault, to see long pauses and slow loops; if set, every rest is watched; 0 turns this off")
	fs.BoolVar(&f.inputs, "inputs", true, "first change each field of the samples alone, without faults; off with --scenario, --faults or --plan")
	fs.BoolVar(&f.strict, "strict", false, "count all remarks about changed fields, numbers of requests and actions that were given up as findings")
	fs.BoolVar(&f.updateBudget, "update-budget", false, "write the number of requests that each scenario needs without a fault to the file with the settings; later checks compare with it")
	fs.BoolVar(&f.paths, "paths", true, "also run scenarios without faults that reach states on different ways: two resources side by side, a changed and a created one, a deleted namespace; off with --scenario, --faults or --plan")
	fs.StringVar(&f.upgrade, "upgrade-from", "", "old version from which to upgrade, instead of injecting faults: a revision of git, the folder of a project, or a command, such as v1.2.0")
	fs.StringVar(&f.shard, "shard", "", "inject only one part of the planned faults; 1/4 means the first of four parts")
	fs.IntVar(&f.workers, "workers", 0, "number of control planes that run in parallel (default: as many as the machine has room for)")
	fs.BoolVar(&f.stopAtFirst, "stop-at-first", false, "stop at the first finding")
	fs.StringSliceVar(&f.kinds, "faults", nil, "inject only these kinds of faults, such as kill-lost,conflict")
	fs.StringArrayVarP(&f.output, "output", "o", nil, outputUsage)
	fs.StringVar(&f.findings, "findings", defaultFindings, "folder where findings are saved")
	fs.Float64Var(&f.maxInconclusive, "max-inconclusive", 10, "percentage of inconclusive runs above which the exit code is 2")
	fs.BoolVar(&f.resume, "resume", false, "continue the last check that was interrupted or whose budget was used up")
	fs.BoolVar(&f.planOnly, "plan", false, "run the controller without faults, list the faults that a check would inject, and stop")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "also print fields that are not compared and faults that were not applied")
}

func (f *checkFlags) execute(ctx context.Context, fs *pflag.FlagSet, stdio Stdio) error {
	hurry, settle := secondSignal()
	defer settle()
	f.hurry = hurry
	outputs, err := parseOutputs(f.output)
	if err != nil {
		return usageError{err}
	}
	o, err := f.options(fs, stdio.In)
	if err != nil {
		return usageError{err}
	}
	if err := f.configure(&o); err != nil {
		return usageError{err}
	}
	noteEmulation(o.Kubernetes, stdio)
	saved, err := f.saved(&o)
	if err != nil {
		return usageError{err}
	}
	o.First = report.Faults(saved)
	if o.PlanOnly = f.planOnly; !f.planOnly {
		if err := f.record(fs, &o); err != nil {
			return usageError{err}
		}
	}
	result, err := f.check(ctx, o, stdio)
	if err != nil {
		o.Journal.Close(o.Known == nil)
		return couldNot(ctx, err)
	}
	if f.planOnly {
		return errors.Join(writePlan(stdio, result), f.writeBudget(result, stdio))
	}
	f.moveFixed(result, saved)
	o.Journal.Close(result.Report.Stopped == "" && len(result.Report.LeftOut) == 0)
	unsaved := result.Report.Keep(f.keepOptions(result))
	if err := errors.Join(outputs.write(result, f.verbose, stdio), unsaved, f.writeBudget(result, stdio)); err != nil {
		return err
	}
	return exitOf(result.Report)
}

// exitOf returns the exit status for a report, or nil if it is clean.
func exitOf(r *report.Report) error {
	if code := r.ExitCode(); code != exitOK {
		return exitStatus(code)
	}
	return nil
}

// couldNot wraps the error of a check that has no result, so that the exit code is 2.
func couldNot(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = check.ErrInterrupted
	}
	return usageError{fmt.Errorf("could not check: %w", err)}
}

// options validates the flags together, and reads the files that they name.
func (f *checkFlags) options(fs *pflag.FlagSet, stdin io.Reader) (check.Options, error) {
	args := given(fs, f.project.Command)
	o := check.Options{
		Profile: f.profile, OldServer: f.oldServer, Seed: f.seed, Budget: f.budget, Workers: f.workers,
		Horizon: f.horizon, EveryRest: fs.Changed("horizon"),
		StopAtFirst: f.stopAtFirst, Strict: f.strict, UpdateBudget: f.updateBudget, MaxInconclusive: f.maxInconclusive / 100, Command: "koboshi check " + strings.Join(args, " "), Args: args,
	}
	if !fs.Changed("seed") {
		o.Seed = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(os.Getpid()))).Uint64N(1 << 32)
	}
	if f.kubernetes != "" {
		var err error
		if o.Kubernetes, err = kubeversion.ParseMinor(f.kubernetes); err != nil {
			return o, fmt.Errorf("--kubernetes: %w", err)
		}
	}
	if f.workers < 0 || f.workers > 64 {
		return o, fmt.Errorf("--workers is %d; use 1 to 64, or 0 for as many as the machine has room for", f.workers)
	}
	if f.maxInconclusive < 0 || f.maxInconclusive > 100 {
		return o, fmt.Errorf("--max-inconclusive is %g; use a percentage from 0 to 100", f.maxInconclusive)
	}
	if f.profile != "" {
		if _, err := controllers.Lookup(f.profile); err != nil {
			return o, err
		}
	}
	if port := f.project.WebhookPort; port < 0 || port > 65535 {
		return o, fmt.Errorf("--webhook-port is %d; use 1 to 65535, or 0 to detect it", port)
	}
	if f.project.ReadsStdin() && atTerminal(stdin) {
		return o, errors.New("the path - means standard input, which is a terminal; pipe the manifests into koboshi, as in: helm template . | koboshi check --manifests -")
	}
	f.project.Kubernetes = o.Kubernetes
	if err := f.combine(fs); err != nil {
		return o, err
	}
	if f.horizon < 0 {
		return o, fmt.Errorf("--horizon is %s; use a positive time such as 15s, or 0 to turn off watching at rest", f.horizon)
	}
	f.values = map[string][]string{}
	for _, name := range subjectFlags {
		if flag := fs.Lookup(name); flag.Changed {
			f.values[name] = valuesOf(flag)
		}
	}
	var err error
	if f.project.Env, err = project.Environment(f.project.Env); err != nil {
		return o, err
	}
	if o.Shard, o.Shards, err = parseShard(f.shard); err != nil {
		return o, err
	}
	if o.Faults, err = parseKinds(f.kinds); err != nil {
		return o, err
	}
	if f.driver.command != "" {
		o.Scenarios = f.driver.scenarios(f.project.Dir)
		return o, nil
	}
	o.Scenarios, o.Files, err = scenario.LoadAll(f.scenarios)
	return o, err
}

// combine returns an error if one flag would have no effect because of another.
func (f *checkFlags) combine(fs *pflag.FlagSet) error {
	// Scenarios, suites and kinds of faults name what is to be checked, so nothing else is.
	everything := len(f.scenarios)+len(f.kinds) == 0 && f.driver.command == "" && f.upgrade == "" && !f.planOnly
	f.inputsAsked, f.pathsAsked = fs.Changed("inputs"), fs.Changed("paths")
	f.inputs, f.paths = f.inputs && (f.inputsAsked || everything), f.paths && (f.pathsAsked || everything)
	switch {
	case f.planOnly && f.resume:
		return errors.New("--resume continues to inject faults, but --plan injects none; omit one of them")
	case f.planOnly && fs.Changed("output"):
		return errors.New("-o writes a report, but --plan only lists the planned faults; omit one of them")
	case f.planOnly && f.inputs:
		return errors.New("--inputs changes fields without faults, but --plan only lists the planned faults; omit one of them")
	case f.planOnly && f.paths:
		return errors.New("--paths runs scenarios that get no faults, but --plan only lists the planned faults; omit one of them")
	case len(f.scenarios) > 0 && f.project.Samples != "" && !f.inputs && !f.paths:
		return errors.New("--samples names samples from which to generate scenarios, but --scenario replaces generated scenarios; omit one of them, or add --inputs or --paths, which use the samples as well")
	}
	if err := f.driver.check(f, fs); err != nil {
		return err
	}
	if err := f.combineBudget(); err != nil {
		return err
	}
	if err := f.combineUpgrade(fs); err != nil {
		return err
	}
	return f.project.Check()
}

func parseShard(text string) (i, n int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	first, second, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(first)
	n, err2 := strconv.Atoi(second)
	if !ok || err1 != nil || err2 != nil || i < 1 || i > n {
		return 0, 0, fmt.Errorf("--shard is %q; write PART/PARTS, such as 1/4", text)
	}
	return i, n, nil
}

func parseKinds(names []string) (kinds []fault.Kind, err error) {
	for _, name := range names {
		if !slices.Contains(fault.Kinds(), fault.Kind(name)) {
			return nil, fmt.Errorf("--faults: unknown kind %q; choose from %v", name, fault.Kinds())
		}
		kinds = append(kinds, fault.Kind(name))
	}
	return kinds, nil
}

// given returns the command and the flags that were set, as the user would type them.
func given(fs *pflag.FlagSet, command []string) (args []string) {
	fs.Visit(func(flag *pflag.Flag) {
		for _, value := range valuesOf(flag) {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	if len(command) > 0 {
		args = append(append(args, "--"), command...)
	}
	return args
}

// valuesOf returns the values of a flag for reports and findings. It omits the values of
// environment variables and of charts, which may be secret.
func valuesOf(flag *pflag.Flag) (values []string) {
	list, ok := flag.Value.(pflag.SliceValue)
	if !ok {
		return []string{flag.Value.String()}
	}
	for _, value := range list.GetSlice() {
		switch flag.Name {
		case "env":
			values = append(values, withoutValue(value))
		case "set":
			values = append(values, project.SettingNames(value)...)
		default:
			values = append(values, value)
		}
	}
	return values
}

// subjectFlags lists the flags that define what is checked and in which plane. They are
// saved in the file of each finding.
var subjectFlags = []string{
	"dir", "main", "kustomization", "manifests", "helm", "values", "set", "deployment", "crds", "rbac", "webhooks", "webhook-port", "with-crds", "given",
	"upgrade-from", "stub-secret", "stub-configmap", "samples", "args", "args-only", "env", "election", "run", "profile", "old-server", "kubernetes",
}

// subject returns the flags and the command that define what is checked.
func (f *checkFlags) subject() (args []string) {
	for _, name := range subjectFlags {
		for _, value := range f.values[name] {
			args = append(args, "--"+name+"="+value)
		}
	}
	if len(f.project.Command) > 0 {
		args = append(append(args, "--"), f.project.Command...)
	}
	return args
}

func (f *checkFlags) keepOptions(result *check.Result) report.KeepOptions {
	return report.KeepOptions{
		Dir: f.findings, Subject: f.subject(), Plane: result.Profile, Scenarios: result.Scenarios, Traces: result.Traces,
	}
}

// check prepares and runs the check, and shows its progress.
func (f *checkFlags) check(ctx context.Context, o check.Options, stdio Stdio) (*check.Result, error) {
	tty := isTerminal(stdio.Err)
	progress := report.NewProgress(stdio.Err, report.ProgressOptions{TTY: tty, Color: tty && os.Getenv("NO_COLOR") == "", Width: widthOf(stdio.Err)})
	defer progress.Close()
	dir, remove, err := temporary(checkTemp)
	if err != nil {
		return nil, err
	}
	defer remove()
	// A plane that was killed leaves its data behind.
	defer datadir.SweepEphemeral()
	if o.Programs, err = unpack.All(o.Programs, filepath.Join(dir, "images")); err != nil {
		return nil, usageError{err}
	}
	o.Dir, o.Observer, o.Hurry = dir, progress, f.hurry
	progress.Note(fmt.Sprintf("seed %d", o.Seed))
	for _, note := range o.Notes {
		progress.Note(note)
	}
	f.project.AllNotes = f.verbose
	f.project.Stdin = stdio.In
	old, discard, err := f.old(ctx, &o, dir, stdio, progress)
	if err != nil {
		return nil, err
	}
	defer discard()
	f.project.Opened = func(p *project.Project) error {
		if err := errors.Join(f.trials(p, &o), f.addPaths(p, &o)); err != nil || len(o.Scenarios) > 0 {
			return err
		}
		return generate(p, &o)
	}
	p, err := project.Prepare(ctx, f.project, filepath.Join(dir, "manager"), stdio.Err, progress)
	if err != nil {
		return nil, err
	}
	o.Subject = p.Subject
	o.Subject.Private = privateValues(f.project.Env)
	if o.Profile == "" { // no flag, no setting and no plan names one
		o.ProfileChosen = true
		o.Profile, o.ProfileReason = p.Subject.Profile()
	}
	f.suites(&o)
	old.upgrade(&o)
	o.Sources = report.Sources{Main: p.MainFile(), RBAC: p.RoleFile()}
	if o.Scenarios, err = o.Opinions.Apply(o.Scenarios); err != nil {
		return nil, err
	}
	for _, t := range o.Trials {
		applied, err := o.Opinions.Apply([]*scenario.Scenario{t.Scenario})
		if err != nil {
			return nil, err
		}
		t.Scenario = applied[0]
	}
	if o.Paths, err = o.Opinions.Apply(o.Paths); err != nil {
		return nil, err
	}
	o.Notes = append(o.Notes, f.unasked(&o)...)
	if err := identify(&o); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.Program = []string{program, "check", "lab"}
	return check.Run(ctx, o)
}

// unasked names the questions that a check of all fields leaves out.
func (f *checkFlags) unasked(o *check.Options) []string {
	if len(o.Trials) == 0 {
		return nil
	}
	left := "whether an upgrade keeps what exists (--upgrade-from)"
	if !f.paths {
		left = "whether every path leads to the same state (--paths), and " + left
	}
	return []string{"not asked: " + left}
}

// trials adds the inputs to try.
func (f *checkFlags) trials(p *project.Project, o *check.Options) error {
	if !f.inputs || o.PlanOnly {
		return nil
	}
	all, notes, err := p.Trials(o.Seed)
	if err != nil {
		return err
	}
	if len(all) == 0 && f.inputsAsked {
		return errors.New("--inputs changes the fields of samples, but there is no sample of a kind that the controller reconciles; name samples with --samples")
	}
	for i, t := range all {
		if o.Shards < 2 || i%o.Shards == o.Shard-1 {
			o.Trials = append(o.Trials, t)
		}
	}
	if f.verbose {
		o.Notes = append(o.Notes, notes...)
	}
	return nil
}

// addPaths adds the scenarios that are run without faults.
func (f *checkFlags) addPaths(p *project.Project, o *check.Options) error {
	if !f.paths {
		return nil
	}
	all, notes, err := p.Paths(o.Seed)
	if err != nil {
		return err
	}
	if len(all) == 0 && f.pathsAsked {
		return errors.New("--paths uses the samples, but there is no sample of a kind that the controller reconciles; name samples with --samples")
	}
	for i, sc := range all {
		if o.Shards < 2 || i%o.Shards == o.Shard-1 {
			o.Paths = append(o.Paths, sc)
		}
	}
	o.Notes = append(o.Notes, notes...)
	return nil
}

// generate makes the scenarios from the project's samples.
func generate(p *project.Project, o *check.Options) error {
	scenarios, notes, err := p.Scenarios(o.Seed)
	if err != nil {
		return err
	}
	for _, note := range notes {
		o.Observer.Note(note)
	}
	o.Scenarios, o.Generated, o.Files = scenarios, true, scenario.FilesOf(p.Samples, scenarios)
	return nil
}
