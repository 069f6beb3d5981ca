// Command store is the object store of the bench. It is a separate process so
// that its cost is not attributed to another program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/bench/internal/countstore"
)

func main() {
	var store countstore.Server
	flag.IntVar(&store.Buckets, "buckets", 1000, "number of buckets in the store")
	flag.DurationVar(&store.Delay, "delay", 2*time.Millisecond, "time between a request and its response")
	ready := flag.String("ready-file", "", "file to write the addresses to, in JSON, once the store is reachable")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &store, *ready)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "store:", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, store *countstore.Server, ready string) error {
	s3, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	failed := make(chan error, 2)
	go func() { failed <- store.ServeOn(s3) }()
	go func() {
		server := &http.Server{Handler: store.Control(), ReadHeaderTimeout: time.Minute}
		failed <- server.Serve(control)
	}()
	if err := announce(ready, countstore.Addresses{
		Endpoint: "http://" + s3.Addr().String(),
		Control:  "http://" + control.Addr().String(),
	}); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
		return nil
	}
}

// announce writes the ready file atomically, so that no reader sees an incomplete file.
func announce(path string, addresses countstore.Addresses) error {
	if path == "" {
		return errors.New("-ready-file is required")
	}
	text, err := json.Marshal(addresses)
	if err != nil {
		return fmt.Errorf("encoding the addresses: %w", err)
	}
	if err := os.WriteFile(path+".part", text, 0o600); err != nil {
		return fmt.Errorf("writing the ready file: %w", err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		return fmt.Errorf("writing the ready file: %w", err)
	}
	return nil
}
