package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/cli/static"
	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/settings"
	"github.com/koboshi-dev/koboshi/internal/ship"
	"github.com/koboshi-dev/koboshi/internal/ship/certificates"
	"github.com/koboshi-dev/koboshi/internal/ship/choices"
	"github.com/koboshi-dev/koboshi/internal/ship/compile"
	"github.com/koboshi-dev/koboshi/internal/ship/publish"
)

// shipVersion is the version of the output of koboshi ship -o json.
const shipVersion = "ship.koboshi.dev/v1"

// defaultPlatforms are those for which most operators are published.
var defaultPlatforms = []string{"linux/amd64", "linux/arm64"}

// defaultChannels are those of operator-sdk.
var defaultChannels = []string{"alpha"}

// shipFlags holds the flags of koboshi ship as given.
type shipFlags struct {
	project   project.Options
	image     string
	platforms []string
	base      string
	dir       string
	chart     bool
	push      bool
	archive   string
	load      []string
	olm       bool
	sign      string
	certs     string
	output    string
	// checkImage is the name of the image for koboshi check --on-cluster.
	checkImage string
	checkFiles []string
	// verifies installs what was made in planes. upgradeFrom names an older version that is upgraded there, and
	// scenario is performed there; verifyBudget is for the check that follows.
	verifies              bool
	upgradeFrom, scenario string
	verifyBudget          time.Duration
}

func newShip(stdio Stdio) *cobra.Command {
	var f shipFlags
	cmd := &cobra.Command{
		Use:   "ship",
		Short: "Build the image of an operator and the manifest that installs it, without Docker",
		Long: `Build the image of an operator and the manifest that installs it, without Docker.

Koboshi builds the manager for each platform, and puts it into an image that
otherwise contains only certificate authorities, users and a folder for temporary
files. The manifest is config/default, in which the image is named by its digest.
Your files are not changed. If containers in the manifest start other programs from
the same image, Koboshi looks for main packages with these names below cmd/.

The output folder gets

  image/          the image for all platforms, in the OCI layout
  sbom/           the Go modules of each image, in SPDX 2.3
  provenance.json where the image comes from, in SLSA's format, with the git revision
  install.yaml    for kubectl apply --server-side -f
  helm/           the same as a Helm chart, as a folder and as an archive

The same code gives the same digest on any machine, with the same version of Go and
of Koboshi. SOURCE_DATE_EPOCH sets the time of all files, which otherwise is the
beginning of 1970.

With --push, the image, its SBOMs and its provenance are sent to the registry in
the image's name,
with the credentials of docker login or podman login. With --load, the image is
copied to a local cluster, and install.yaml names it by a tag made from its digest.

With --olm, the output folder also gets bundle/, with which the Operator Lifecycle
Manager (OLM) installs the operator, and bundle-image/, its image in the OCI layout,
which --push sends to IMAGE-bundle. The version is the tag of the image.

Files in config/chart are added to the chart, or replace or change those that are
generated.

With --sign, the image, its SBOMs and its provenance are signed with a private key,
as cosign does, so that cosign verify --key cosign.pub --insecure-ignore-tlog IMAGE
accepts the image. The password of the key is COSIGN_PASSWORD, or is asked for.

With --certificates, the webhooks get their certificate from cert-manager, or the
manager makes and renews one itself; otherwise, config/default decides. A manager
can do so if its project was made by Koboshi.

The name of the image, the platforms, the base, further programs and the source of
certificates can be set in koboshi.yaml, in the section ship.`,
		Example: `  koboshi ship
  koboshi ship --image ghcr.io/example/operator:v1.2.0 --push
  koboshi ship --image ghcr.io/example/operator:v1.2.0 --push --olm
  koboshi ship --push --sign cosign.key
  koboshi ship --load kind && kubectl apply --server-side -f dist/install.yaml
  koboshi ship --platform linux/amd64 --base gcr.io/distroless/static:nonroot`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.output != "" && f.output != "json" {
				return usageError{fmt.Errorf("unknown output format %q; use -o json, or omit -o", f.output)}
			}
			if err := f.combineVerify(cmd.Flags()); err != nil {
				return usageError{err}
			}
			return f.run(cmd.Context(), stdio.In, cmd.OutOrStdout(), stdio.Err)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.project.Dir, "dir", ".", "folder of the project")
	fs.StringVar(&f.project.Main, "main", "", "folder of the manager's main package (default: detected automatically)")
	fs.StringVar(&f.project.Kustomization, "kustomization", "", "folder of the kustomization that installs the whole project (default: config/default)")
	fs.StringVar(&f.image, "image", "", "name of the image (default: the manager's image in the manifests)")
	fs.StringSliceVar(&f.platforms, "platform", nil, "platforms of the image (default: "+strings.Join(defaultPlatforms, ",")+")")
	fs.StringVar(&f.base, "base", "", "image to which the programs are added (default: an empty image)")
	fs.StringVar(&f.dir, "output-dir", "dist", "folder for the files, relative to the current folder")
	fs.BoolVar(&f.chart, "chart", true, "make a Helm chart; --chart=false omits it")
	fs.BoolVar(&f.push, "push", false, "push the image to its registry")
	fs.StringVar(&f.archive, "archive", "", "file to which the image for this machine's platform is written, for docker load")
	fs.StringArrayVar(&f.load, "load", nil, "local cluster to which the image is copied: kind, k3d or minikube, each also with =NAME, or k3s, containerd or docker; may be repeated")
	fs.BoolVar(&f.olm, "olm", false, "also make a bundle for the Operator Lifecycle Manager (OLM), and its image")
	fs.StringVar(&f.checkImage, "check-image", "", "also make an image with this name for koboshi check --on-cluster; it has Koboshi, the manager, and the files of the project that a check reads, among them Go files")
	fs.StringSliceVar(&f.checkFiles, "check-files", nil, "more files and folders of the project for the image of --check-image, such as a server that scenarios start")
	fs.BoolVar(&f.verifies, "verify", false, "install the manifest and the chart in control planes, uninstall them, and check the image's program")
	fs.StringVar(&f.project.Samples, "samples", "", "file or folder of the objects that --verify applies (default: config/samples)")
	fs.StringVar(&f.scenario, "scenario", "", "file with a scenario that --verify performs up to its first deletion, instead of applying samples")
	fs.StringArrayVar(&f.project.Args, "args", nil, "argument that --verify adds to the manager's command line; may be repeated")
	fs.StringVar(&f.upgradeFrom, "upgrade-from", "", "git revision, or folder, with an older version of the project, which --verify installs first and then upgrades")
	fs.DurationVar(&f.verifyBudget, "verify-budget", 2*time.Minute, "limit for the check of --verify; 0 omits the check")
	fs.StringVar(&f.sign, "sign", "", "file with the private key with which the image is signed, such as cosign.key")
	fs.StringVar(&f.certs, "certificates", "", "where the webhooks get their certificate: cert-manager or self-signed (default: as in config/default)")
	fs.StringVarP(&f.output, "output", "o", "", "output format: json")
	return cmd
}

func (f *shipFlags) run(ctx context.Context, in io.Reader, out io.Writer, messages *os.File) error {
	start := time.Now()
	o, err := f.options(ctx)
	if err != nil {
		return err
	}
	if o.Key, err = f.key(ctx, in, messages); err != nil {
		return err
	}
	progress := &shipProgress{w: messages, terminal: isTerminal(messages)}
	o.Observer = progress
	preflight, err := f.preflight(ctx, o.Project, progress)
	if err != nil {
		return err
	}
	defer preflight.discard()
	result, err := ship.Run(ctx, o)
	progress.endLine()
	if err != nil {
		return err
	}
	if f.verifies {
		if err := f.verify(ctx, shipped{result, o.Project}, preflight, progress, messages); err != nil {
			return err
		}
	}
	if f.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			APIVersion string `json:"apiVersion"`
			*ship.Result
			Seconds float64 `json:"seconds"`
		}{shipVersion, result, time.Since(start).Round(time.Millisecond).Seconds()})
	}
	return writeShipped(out, result, time.Since(start))
}

// options combines the flags with the settings of the project. Flags take precedence.
func (f *shipFlags) options(ctx context.Context) (o ship.Options, err error) {
	file, err := settings.Find(f.project.Dir)
	if err != nil {
		return o, usageError{err}
	}
	if _, err := exec.LookPath("go"); err != nil {
		return o, usageError{fmt.Errorf("building the manager needs the go command: %w; install Go", err)}
	}
	c := f.choices(file.Ship)
	if o.Reference, err = parseImage(c.Image); err != nil {
		return o, usageError{err}
	}
	if c.Base != "" {
		if o.Base, err = name.ParseReference(c.Base); err != nil {
			return o, usageError{fmt.Errorf("--base %q is not the name of an image: %w", c.Base, err)}
		}
	}
	if c.Certificates != "" {
		if o.Certificates, err = certificates.ParseSource(c.Certificates); err != nil {
			return o, usageError{fmt.Errorf("--certificates: %w", err)}
		}
	}
	if o.Platforms, err = compile.ParsePlatforms(ctx, c.Platforms); err != nil {
		return o, usageError{err}
	}
	for _, text := range f.load {
		target, err := publish.ParseTarget(text)
		if err != nil {
			return o, usageError{err}
		}
		o.Load = append(o.Load, target)
	}
	if o.Time, err = sourceDate(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return o, usageError{err}
	}
	if f.verifies {
		if err := canVerify(o.Platforms); err != nil {
			return o, usageError{err}
		}
	}
	if o.Check, err = f.checks(); err != nil {
		return o, usageError{err}
	}
	if o.Project, err = project.Load(ctx, f.project); err != nil {
		return o, usageError{err}
	}
	o.Programs, o.Push, o.Archive, o.Dir = c.Programs, f.push, f.archive, f.dir
	o.OLM, o.Channels = f.olm, c.OLM.Channels
	o.Chart, o.WatchNamespaces = f.chart, c.WatchNamespaces
	o.Tool = "koboshi-" + static.Koboshi()
	o.Cache, err = shipCache(o.Project.Dir)
	return o, err
}

// checks returns how to make the image for checks, or nil.
func (f *shipFlags) checks() (*ship.CheckImage, error) {
	if f.checkImage == "" {
		if len(f.checkFiles) > 0 {
			return nil, errors.New("--check-files adds files to the image of --check-image; name this image, or omit --check-files")
		}
		return nil, nil //nolint:nilnil // no such image is made
	}
	reference, err := name.NewTag(f.checkImage)
	if err != nil {
		return nil, fmt.Errorf("--check-image %q: %w; name it as registry.example.com/team/operator-check:v1.2.0", f.checkImage, err)
	}
	program, err := os.Executable()
	return &ship.CheckImage{Reference: reference, Program: program, Files: f.checkFiles}, err
}

// choices returns the settings, in which the flags that the user gave replace those of the file.
func (f *shipFlags) choices(c choices.Choices) choices.Choices {
	if f.image != "" {
		c.Image = f.image
	}
	if f.base != "" {
		c.Base = f.base
	}
	if f.certs != "" {
		c.Certificates = f.certs
	}
	if len(f.platforms) > 0 {
		c.Platforms = f.platforms
	}
	if len(c.Platforms) == 0 {
		c.Platforms = defaultPlatforms
	}
	if len(c.OLM.Channels) == 0 {
		c.OLM.Channels = defaultChannels
	}
	return c
}

// parseImage parses the name of the image to build; nil means that there is none.
func parseImage(text string) (name.Reference, error) {
	if text == "" {
		return nil, nil
	}
	tag, err := name.NewTag(text)
	if err != nil {
		return nil, fmt.Errorf("--image %q: %w; name it as registry.example.com/team/operator:v1.2.0", text, err)
	}
	return tag, nil
}

// sourceDate parses SOURCE_DATE_EPOCH, a number of seconds since 1970. Its specification is at
// reproducible-builds.org/specs/source-date-epoch.
func sourceDate(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, which is not a number of seconds since 1970; correct it, or unset it", text)
	}
	return time.Unix(seconds, 0), nil
}

// shipCache returns the folder for the binaries and layers of a project.
func shipCache(project string) (string, error) {
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for your cache folder: %w; set XDG_CACHE_HOME", err)
	}
	return filepath.Join(folder, "koboshi", "ship", hashed(project)[:16]), nil
}

func writeShipped(out io.Writer, r *ship.Result, took time.Duration) error {
	lines := [][2]string{{"image", r.Image}}
	for _, p := range r.Platforms {
		lines = append(lines, [2]string{"", fmt.Sprintf("%s, %.1f MB", p.Platform, float64(p.Bytes)/1e6)})
	}
	lines = append(lines, [2]string{"layout", r.Layout})
	for _, p := range r.Platforms {
		lines = append(lines, [2]string{"sbom", p.SBOM})
	}
	for _, line := range [][2]string{{"origin", r.Provenance}, {"archive", r.Archive}, {"install", r.Install}, {"signed", signed(r)}} {
		if line[1] != "" {
			lines = append(lines, line)
		}
	}
	if r.Bundle != nil {
		lines = append(lines, [2]string{"bundle", r.Bundle.Folder}, [2]string{"", r.Bundle.Image})
	}
	if r.Chart != nil {
		lines = append(lines, [2]string{"chart", r.Chart.Dir}, [2]string{"", r.Chart.Archive})
	}
	if r.Check != nil {
		lines = append(lines, [2]string{"check", fmt.Sprintf("%s, %.1f MB, in %s", r.Check.Image, float64(r.Check.Bytes)/1e6, r.Check.Layout)})
	}
	verb := "built"
	if r.Pushed {
		verb = "built and pushed"
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(out, "%-8s %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s in %.1f s\n", verb, took.Seconds())
	return err
}

// shipProgress shows what koboshi ship does. On a terminal, an upload is shown in one line that
// changes.
type shipProgress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	percent  int64 // of the upload; -1 after its line has ended
	open     bool  // whether the line of the upload has not ended
}

func (p *shipProgress) Built(program string, platform v1.Platform, took time.Duration) {
	p.say("%s for %s: built in %.1f s", program, platform.String(), took.Seconds())
}

func (p *shipProgress) Note(text string) { p.say("%s", text) }

func (p *shipProgress) Pushed(done, all int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	percent := done * 100 / max(all, 1)
	if !p.terminal || p.open && percent == p.percent {
		return
	}
	p.percent, p.open = percent, true
	_, _ = fmt.Fprintf(p.w, "\rpushing: %.1f of %.1f MB, %d %%", float64(done)/1e6, float64(all)/1e6, percent)
}

func (p *shipProgress) say(format string, args ...any) {
	p.endLine()
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

// endLine ends the line of an upload.
func (p *shipProgress) endLine() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open {
		_, _ = fmt.Fprintln(p.w)
		p.open = false
	}
}

var _ ship.Observer = (*shipProgress)(nil)
