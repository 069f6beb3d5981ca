// Command program is the server that runs in the Pods of the conformance tests. Its
// health and its answers can be changed while it runs. Where a shell is enough, the tests
// use a shell instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "program:", err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("address", ":8080", "address to listen on")
	says := flag.String("says", os.Getenv("SAYS"), "text at the start of every response")
	drain := flag.Duration("drain", 0, "time for which to keep serving after SIGTERM")
	unready := flag.Bool("unready", false, "start with /readyz failing")
	flag.Parse()

	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "%s listens on %s\n", *says, listener.Addr())
	server := &http.Server{Handler: handler(*says, !*unready), ReadHeaderTimeout: time.Minute}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-stop.Done():
	}
	fmt.Fprintln(os.Stdout, "got SIGTERM")
	<-time.After(*drain)
	ctx, cancelShutdown := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancelShutdown()
	return errors.Join(server.Shutdown(ctx), context.Cause(ctx))
}

// handler answers with the given text and the Pod's name. A POST to /healthz or /readyz
// toggles the state that this path reports.
func handler(says string, ready bool) http.Handler {
	mux := http.NewServeMux()
	hostname, err := os.Hostname()
	if err != nil {
		hostname = err.Error()
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "%s from %s\n", says, hostname)
	})
	for path, initially := range map[string]bool{"/healthz": true, "/readyz": ready} {
		var ok atomic.Bool
		ok.Store(initially)
		mux.HandleFunc("POST "+path, func(http.ResponseWriter, *http.Request) { ok.Store(!ok.Load()) })
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			if !ok.Load() {
				http.Error(w, "turned off", http.StatusInternalServerError)
			}
		})
	}
	return mux
}
