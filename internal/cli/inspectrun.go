package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/api"
	"github.com/koboshi-dev/koboshi/internal/inspect/page"
	"github.com/koboshi-dev/koboshi/internal/inspect/record"
	"github.com/koboshi-dev/koboshi/internal/inspect/source"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// inspectRunFlags holds the flags of koboshi inspect -- COMMAND.
type inspectRunFlags struct {
	kubeconfig string
	export     string
	port       int
}

func (f *inspectRunFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "with -- COMMAND: kubeconfig of the cluster (default: KUBECONFIG, then the current folder's cluster, then ~/.kube/config)")
	fs.StringVar(&f.export, "export", "", "with -- COMMAND: end when the command ends, and write the session to this file")
	fs.IntVar(&f.port, "port", 0, "with -- COMMAND: port of the page on 127.0.0.1 (default: a free port)")
	fs.Lookup("port").DefValue = "0" // so that pflag does not append a default
}

// run runs the command behind the recorder, and serves the page meanwhile.
func (f *inspectRunFlags) run(ctx context.Context, command []string, stdio Stdio) error {
	upstream, err := f.cluster()
	if err != nil {
		return usageError{err}
	}
	if f.export != "" {
		if f.export, err = writableFile("--export", f.export); err != nil {
			return usageError{err}
		}
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	log, server, err := recording(watching, shellescape.QuoteCommand(command), f.port, nil)
	if err != nil {
		return err
	}
	defer server.Stop()
	_, _ = fmt.Fprintf(stdio.Err, "koboshi: inspect the session at %s\n", server.URL())
	code, err := record.Run(ctx, record.Options{Upstream: upstream, Command: command, Env: os.Environ(), Log: log, Output: stdio.Out})
	if err != nil {
		return usageError{err}
	}
	if f.export != "" {
		if err := exportLog(log, f.export); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: wrote %s; koboshi inspect %s shows it\n", f.export, shellescape.Quote(f.export))
	} else if ctx.Err() == nil {
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: the command exited with code %d; the page stays until you press Ctrl-C\n", code)
		<-ctx.Done()
		return nil
	}
	if code != 0 && ctx.Err() == nil {
		return exitStatus(code)
	}
	return nil
}

// exportLog writes a log without values that became known as secret after it was recorded.
func exportLog(log *trace.Log, file string) error {
	var b bytes.Buffer
	if _, err := log.WriteTo(&b); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(scrub.Known.Text(b.String())), 0o600); err != nil {
		return fmt.Errorf("exporting the session: %w", err)
	}
	return nil
}

// cluster returns the configuration of the cluster, in the same order of preference as koboshi
// kubectl.
func (f *inspectRunFlags) cluster() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	if local := filepath.Join(defaultDataDir, "kubeconfig"); f.kubeconfig == "" && os.Getenv("KUBECONFIG") == "" {
		if _, err := os.Stat(local); err == nil {
			rules.ExplicitPath = local
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster of the command: %w; name one with --kubeconfig, or start one with koboshi up", err)
	}
	return config, nil
}

func newInspectPage(stdio Stdio) *cobra.Command {
	var port int
	cmd := &cobra.Command{
		Use:   "page FILE",
		Short: "Show a recorded session as a page until interrupted",
		Long: `Show a recorded session as a page until interrupted. The page is only on 127.0.0.1.
Its address contains a token; whoever has it can read the session while this
command runs.

Keys: / filters the objects, o goes to their list, digits choose a view, Escape
goes back to the first screen.`,
		Example: "  koboshi inspect page session.trace.jsonl",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			session, err := source.Load(args[0])
			if err != nil {
				return usageError{err}
			}
			server, err := api.Start(cmd.Context(), api.Options{Session: inspect.Still(session), Page: page.Files(), Port: port})
			if err != nil {
				return err
			}
			defer server.Stop()
			_, _ = fmt.Fprintf(stdio.Out, "%s\n", server.URL())
			<-cmd.Context().Done()
			return nil
		},
	}
	cmd.Flags().IntVar(&port, "port", 0, "port of the page on 127.0.0.1 (default: a free port)")
	cmd.Flags().Lookup("port").DefValue = "0" // so that pflag does not append a default
	return cmd
}

// errNoCommand reports -- without a command.
var errNoCommand = errors.New("there is no command after --; write koboshi inspect -- COMMAND")
