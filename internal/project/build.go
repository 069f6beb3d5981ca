package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/home"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/process"
)

const (
	// errorTail is the number of bytes that an error includes from the end of the
	// compiler's output.
	errorTail = 4 << 10
	// helpWithin is the time limit for printing the help. A program that does not support
	// --help may run forever, and a program that supports it may be slow on a busy machine.
	helpWithin = 15 * time.Second
)

// Build builds the manager and writes it to the file named by out. Build also completes
// Subject with the flags that the program supports. If progress is not nil, Build writes
// the lines about downloads to it. CGO_ENABLED, GOFLAGS and similar variables keep the user's
// values.
func (p *Project) Build(ctx context.Context, out string, progress io.Writer) error {
	if len(p.options.Command) > 0 {
		return p.Complete(ctx, out)
	}
	if p.Main == "" {
		return errors.New("building the manager: there is no main package; give the controller's command after --")
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("building the manager: %w", err)
	}
	if progress == nil {
		progress = io.Discard
	}
	if err := p.compile(ctx, out, progress); err != nil {
		return err
	}
	return p.Complete(ctx, out)
}

// Complete completes Subject for a manager that has been built, or for the user's command, if
// there is one.
func (p *Project) Complete(ctx context.Context, program string) error {
	switch {
	case p.merges():
		return p.mergeCommand(ctx)
	case len(p.options.Command) > 0:
		if program, err := p.program(); err == nil {
			p.noteLibraries(program)
		}
		return nil
	}
	p.noteLibraries(program)
	flags, err := p.help(ctx, append([]string{program}, p.subcommands()...))
	if err != nil {
		return err
	}
	return p.compose(program, flags)
}

// mergeCommand completes Subject for a command of the user, to which the arguments of the
// Deployment are added.
func (p *Project) mergeCommand(ctx context.Context) error {
	program, err := p.program()
	if err != nil {
		return err
	}
	p.noteLibraries(program)
	words, _ := leadingWords(p.commandArgs())
	if len(words) == 0 {
		words = p.subcommands()
	}
	flags, err := p.help(ctx, append([]string{program}, words...))
	if err != nil {
		return err
	}
	return p.compose(program, flags)
}

func (p *Project) compile(ctx context.Context, out string, progress io.Writer) error {
	args := []string{"build", "-buildvcs=false"}
	if !strings.Contains(os.Getenv("GOFLAGS"), "ldflags") {
		args = append(args, "-ldflags=-s -w") // linking takes most of the time
	}
	dir, folder := p.MainModule()
	args = append(args, "-o", out, "./"+filepath.ToSlash(folder))
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	said := &compilerOutput{text: output.NewTail(errorTail), progress: progress}
	cmd.Stdout, cmd.Stderr = said, said

	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("building the manager: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("building the manager: in %s: go %s: %w; correct the errors below, or give a built program after --\n%s", dir, strings.Join(args, " "), err, strings.TrimSpace(said.text.String()))
	}
	return nil
}

// MainModule returns the folder in which the go command builds the main package, and the path
// of the package in it. A main package may be in a module of its own, inside the project.
func (p *Project) MainModule() (dir, folder string) { return p.moduleOf(p.Main) }

// moduleOf returns the folder of the module that contains a main package, and the path of the
// package in it.
func (p *Project) moduleOf(folder string) (dir, inside string) {
	main := filepath.Join(p.Dir, folder)
	for dir := main; dir != p.Dir && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			inside, _ := filepath.Rel(dir, main) // dir is above main
			return dir, inside
		}
	}
	return p.Dir, folder
}

// compilerOutput passes the lines about downloads on to progress, and keeps the end of
// the output.
type compilerOutput struct {
	text     *output.Tail
	progress io.Writer
	line     []byte
}

func (c *compilerOutput) Write(b []byte) (int, error) {
	_, _ = c.text.Write(b) // never fails
	c.line = append(c.line, b...)
	for {
		line, rest, ok := bytes.Cut(c.line, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		if bytes.HasPrefix(line, []byte("go: downloading ")) {
			_, _ = fmt.Fprintf(c.progress, "%s\n", line)
		}
		c.line = rest
	}
}

// help runs the program with --help, and returns its flags. It gives the program no kubeconfig, so
// that a program that ignores --help reaches no cluster.
func (p *Project) help(ctx context.Context, command []string) (map[string]flagInfo, error) {
	empty, err := os.MkdirTemp("", "koboshi-help-")
	if err != nil {
		return nil, fmt.Errorf("reading the manager's flags: %w", err)
	}
	defer func() { _ = os.RemoveAll(empty) }()
	var printed bytes.Buffer
	ctx, cancel := context.WithTimeout(ctx, helpWithin)
	defer cancel()
	child, err := process.Start(ctx, process.Spec{
		Command: append(command, "--help"), Dir: empty, Output: &printed,
		Env: append(home.Environment(empty), "TMPDIR="+empty, "KUBECONFIG="+filepath.Join(empty, "none")),
	})
	if err != nil {
		return nil, fmt.Errorf("reading the manager's flags: %w", err)
	}
	<-child.Exited() // the program exits at the latest when the context ends
	flags := parseHelp(printed.String())
	if len(flags) == 0 {
		p.note("the manager prints no flags for --help, so it is started with the flags of its Deployment (use %s to add others)", flagArgs)
	}
	return flags, nil
}

// subcommands returns the words before the first flag in the manager's arguments.
func (p *Project) subcommands() []string {
	if p.manager == nil || p.options.ArgsOnly {
		return nil
	}
	words, _ := leadingWords(p.manager.args)
	return words
}
