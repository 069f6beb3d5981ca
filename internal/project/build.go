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
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/process"
)

const (
	// progressEvery is how often a build says that it goes on.
	progressEvery = 5 * time.Second
	// errorTail is how much of what the compiler says an error holds, in bytes.
	errorTail = 4 << 10
	// helpWithin is how long a program may take to print its help; one that does
	// not know --help may run on, but one that does may be slow on a busy machine.
	helpWithin = 15 * time.Second
)

// Build builds the manager to the file out and completes Subject by the flags
// that the program says it knows. It tells of its progress line by line, if
// progress is not nil. CGO_ENABLED, GOFLAGS and the like are the user's.
func (p *Project) Build(ctx context.Context, out string, progress io.Writer) error {
	if len(p.options.Command) > 0 {
		return nil
	}
	if p.Main == "" {
		return errors.New("building the manager: no main package is known; name a program after --")
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
	flags, err := p.help(ctx, out)
	if err != nil {
		return err
	}
	p.compose(out, flags)
	return nil
}

func (p *Project) compile(ctx context.Context, out string, progress io.Writer) error {
	args := []string{"build", "-buildvcs=false"}
	if !strings.Contains(os.Getenv("GOFLAGS"), "ldflags") {
		args = append(args, "-ldflags=-s -w") // linking is most of the time
	}
	args = append(args, "-o", out, "./"+filepath.ToSlash(p.Main))
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.Dir
	cmd.WaitDelay = time.Second
	said := &compilerOutput{progress: progress}
	cmd.Stdout, cmd.Stderr = said, said

	stop := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() { tick(stop, said, p.Main) })
	err := cmd.Run()
	close(stop)
	ticking.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("building the manager: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("building the manager: in %s: go %s: %w\n%s", p.Dir, strings.Join(args, " "), err, said.end())
	}
	return nil
}

// tick says every now and then that the build goes on.
func tick(stop <-chan struct{}, said *compilerOutput, main string) {
	began := time.Now()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			said.report(fmt.Sprintf("building %s for %s", main, time.Since(began).Round(time.Second)))
		}
	}
}

// compilerOutput passes on what is downloaded, and keeps all.
type compilerOutput struct {
	mu       sync.Mutex
	progress io.Writer
	text     bytes.Buffer
	line     []byte
}

func (c *compilerOutput) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.Write(b)
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

func (c *compilerOutput) report(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = fmt.Fprintln(c.progress, line)
}

// end is the end of the output, in whole lines.
func (c *compilerOutput) end() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.TrimSpace(c.text.String())
	if over := len(text) - errorTail; over > 0 {
		text = text[over:]
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = "…\n" + rest
		}
	}
	return text
}

// help asks the program for its flags. It finds no cluster, whatever it does
// instead of helping.
func (p *Project) help(ctx context.Context, program string) (map[string]flagInfo, error) {
	empty, err := os.MkdirTemp("", "koboshi-help-")
	if err != nil {
		return nil, fmt.Errorf("asking the manager for its flags: %w", err)
	}
	defer func() { _ = os.RemoveAll(empty) }()
	command := append([]string{program}, p.subcommands()...)
	var output bytes.Buffer
	ctx, cancel := context.WithTimeout(ctx, helpWithin)
	defer cancel()
	child, err := process.Start(ctx, process.Spec{
		Command: append(command, "--help"), Dir: empty, Output: &output,
		Env: []string{"HOME=" + empty, "TMPDIR=" + empty, "KUBECONFIG=" + filepath.Join(empty, "none")},
	})
	if err != nil {
		return nil, fmt.Errorf("asking the manager for its flags: %w", err)
	}
	<-child.Exited() // the context sees to it
	flags := parseHelp(output.String())
	if len(flags) == 0 {
		p.note("the manager says nothing of its flags for --help: it is started with those of its Deployment (%s adds others)", flagArgs)
	}
	return flags, nil
}

// subcommands are the words before the first flag.
func (p *Project) subcommands() []string {
	if p.manager == nil {
		return nil
	}
	for i, arg := range p.manager.args {
		if strings.HasPrefix(arg, "-") {
			return p.manager.args[:i]
		}
	}
	return p.manager.args
}
