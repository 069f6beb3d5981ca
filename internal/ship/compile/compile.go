// Package compile builds the Go programs of an image, for each of its platforms.
//
//	Program × Platform ──go build──▶ Binary, in a cache folder
//
// The flags are those of a release, and the result depends only on the code and the compiler: not
// on the folder of the project, on the time, or on git. If nothing has changed since the last
// build, the go command does not even link again.
package compile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/gobuild"
)

// errorTail is the number of bytes that an error includes from the end of the compiler's output.
const errorTail = 4 << 10

// Program is a main package.
type Program struct {
	// Name is the name of the file that is built.
	Name string
	// Dir is the folder of the module, and Package the path of the main package in it.
	Dir, Package string
}

// Binary is a program that was built for a platform.
type Binary struct {
	Name string
	Path string
	Took time.Duration
}

// Options says what to build.
type Options struct {
	Programs  []Program
	Platforms []v1.Platform
	// Cache is the folder for the binaries.
	Cache string
	// Env is added to the environment of the go command.
	Env []string
	// Built is called after each build, possibly from several goroutines. It may be nil.
	Built func(v1.Platform, Binary)
}

// Run builds all programs for all platforms, two at a time, because the go command itself uses
// several processors. The binaries of a platform are in the order of the programs.
func Run(ctx context.Context, o Options) (map[string][]Binary, error) {
	all := map[string][]Binary{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, platform := range o.Platforms {
		binaries := make([]Binary, len(o.Programs))
		all[platform.String()] = binaries
		for i, program := range o.Programs {
			group.Go(func() error {
				start := time.Now()
				path, err := build(ctx, o, program, platform)
				if err != nil {
					return err
				}
				binaries[i] = Binary{Name: program.Name, Path: path, Took: time.Since(start)}
				if o.Built != nil {
					o.Built(platform, binaries[i])
				}
				return nil
			})
		}
	}
	return all, group.Wait()
}

func build(ctx context.Context, o Options, program Program, platform v1.Platform) (string, error) {
	variables, err := variables(platform)
	if err != nil {
		return "", err
	}
	out := filepath.Join(o.Cache, strings.ReplaceAll(platform.String(), "/", "_"), program.Name)
	args := slices.Concat([]string{"build"}, gobuild.ReleaseFlags(), []string{"-o", out, program.Package})
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.WaitDelay = program.Dir, time.Second
	cmd.Env = slices.Concat(os.Environ(), o.Env, fixed, variables)
	said := output.NewTail(errorTail)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s for %s: %w", program.Name, platform.String(), cmp.Or(ctx.Err(), failure(program.Dir, args, err, said.String())))
	}
	return out, nil
}

func failure(dir string, args []string, err error, said string) error {
	return fmt.Errorf("in %s: go %s: %w; correct the errors below\n%s", dir, strings.Join(args, " "), err, strings.TrimSpace(said))
}

// fixed has the variables of the go command that change a program, with the values that it has by
// default. So those of the user's machine have no influence. Without cgo, a program needs no libraries.
var fixed = []string{"CGO_ENABLED=0", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM=7", "GOARM64=v8.0", "GOPPC64=power8"}

// variants names the variable that selects a variant of an architecture, and the values for the
// variants of OCI's platforms. The names of variants are those of containerd's platforms package.
var variants = map[string]struct {
	variable string
	values   map[string]string
}{
	"amd64":   {"GOAMD64", map[string]string{"v1": "v1", "v2": "v2", "v3": "v3", "v4": "v4"}},
	"arm":     {"GOARM", map[string]string{"v5": "5", "v6": "6", "v7": "7"}},
	"arm64":   {"GOARM64", map[string]string{"v8": "v8.0"}},
	"ppc64le": {"GOPPC64", map[string]string{"power8": "power8", "power9": "power9", "power10": "power10"}},
}

// variables returns the variables with which the go command builds for a platform.
func variables(p v1.Platform) ([]string, error) {
	env := []string{"GOOS=" + p.OS, "GOARCH=" + p.Architecture}
	if p.Variant == "" {
		return env, nil
	}
	variant := variants[p.Architecture]
	value, ok := variant.values[p.Variant]
	if !ok {
		return nil, fmt.Errorf("platform %q: the go command knows no variant %q of %s; use %s/%s", p.String(), p.Variant, p.Architecture, p.OS, p.Architecture)
	}
	return append(env, variant.variable+"="+value), nil
}

// ParsePlatforms parses platforms such as linux/amd64, and checks that the go command of the
// machine can build for them.
func ParsePlatforms(ctx context.Context, texts []string) ([]v1.Platform, error) {
	known, err := known(ctx)
	if err != nil {
		return nil, err
	}
	var all []v1.Platform
	for _, text := range texts {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, fmt.Errorf("platform %q: %w; name it as linux/amd64", text, err)
		}
		if !slices.Contains(known, platform.OS+"/"+platform.Architecture) {
			return nil, fmt.Errorf("the go command cannot build for %q; \"go tool dist list\" prints the platforms that it can build for", text)
		}
		if platform.OS != "linux" {
			return nil, fmt.Errorf("platform %q: images are built only for linux, because other systems need a base of their own", text)
		}
		if _, err := variables(*platform); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, platform.Equals) {
			all = append(all, *platform)
		}
	}
	return all, nil
}

// known returns the platforms for which the go command can build.
func known(ctx context.Context) ([]string, error) {
	list, err := exec.CommandContext(ctx, "go", "tool", "dist", "list").Output()
	if err != nil {
		return nil, fmt.Errorf("asking the go command for its platforms: %w; install Go", err)
	}
	var all []string
	for line := range bytes.Lines(list) {
		all = append(all, string(bytes.TrimSpace(line)))
	}
	return all, nil
}
