package cloud

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"
)

// Run runs the command. Without arguments, Run serves on the port in the environment variable PORT;
// with "list", it prints the volumes of the cloud at CLOUD_URL.
func Run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return serve(ctx, os.Getenv("PORT"))
	case slices.Equal(args, []string{"list"}):
		return list(ctx, os.Getenv(Env))
	}
	return fmt.Errorf("cloud: unknown arguments %q; use list to print the volumes, or no argument to start the server", args)
}

func serve(ctx context.Context, port string) error {
	if port == "" {
		return fmt.Errorf("cloud: PORT is not set; set it to the port on which to serve")
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	s := &http.Server{Handler: new(Server).Handler(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); err != http.ErrServerClosed {
		return fmt.Errorf("cloud: %w", err)
	}
	return nil
}

func list(ctx context.Context, url string) error {
	if url == "" {
		return fmt.Errorf("cloud list: %s is not set; set it to the address of the cloud", Env)
	}
	all, err := (&Client{URL: url}).List(ctx, "")
	if err != nil {
		return err
	}
	lines := make([]string, len(all))
	for i, v := range all {
		lines[i] = fmt.Sprintf("%s of size %d\n", v.ID, v.Size)
	}
	slices.Sort(lines)
	for _, line := range lines {
		if _, err := os.Stdout.WriteString(line); err != nil {
			return err
		}
	}
	return nil
}
