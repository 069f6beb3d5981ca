package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/devloop/session"
	"github.com/koboshi-dev/koboshi/internal/devloop/webhook"
	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/api"
	"github.com/koboshi-dev/koboshi/internal/inspect/page"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// mostEntries is the number of entries that a running session keeps at least. The last version
// of each object is kept in addition.
const mostEntries = 100_000

// recording returns a log for a session, and a server that answers questions about it until
// ctx ends. If port is 0, the server listens on a free port. If reviews is nil, no review can be
// sent again.
func recording(ctx context.Context, subject string, port int, reviews *replayer) (*trace.Log, *api.Server, error) {
	trace.NoticeSecrets(func(value string) { scrub.Known.Add(value) })
	log := trace.NewLog(time.Now())
	log.Subject, log.Scrub, log.Most = subject, scrub.Known.Text, mostEntries
	o := api.Options{Session: inspect.Follow(ctx, log, mostEntries), Page: page.Files(), Scrub: scrub.Known.Text, Port: port}
	if reviews != nil {
		reviews.log = log
		o.Replay = reviews.send
	}
	server, err := api.Start(ctx, o)
	return log, server, err
}

// inspectorFile is the name of the file in devDataDir that holds the address of the inspector.
const inspectorFile = "inspector"

// inspectDev records a session of koboshi dev, and serves it until stop is called. The folder
// gets a file with the address, so that koboshi inspect finds the session.
func inspectDev(ctx context.Context, o *session.Options, folder string) (address string, reviews *replayer, stop func(), err error) {
	// Requests that arrive while the session ends are recorded, too.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	reviews = &replayer{}
	log, server, err := recording(ctx, "koboshi dev in "+filepath.Base(o.Project.Dir), 0, reviews)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, inspectorFile), []byte(server.URL()+"\n"), 0o600)
	}
	if err != nil {
		cancel()
		return "", nil, nil, err
	}
	o.Recording = session.Recording{Log: log, Review: func(r webhook.Review) { log.Record(trace.Entry{Review: recorded(r)}) }}
	return server.URL(), reviews, func() { server.Stop(); cancel() }, nil
}

// recorded converts a review to the form that a trace contains.
func recorded(r webhook.Review) *trace.Review {
	return &trace.Review{
		Path: r.Path, RawRequest: r.Request, RawResponse: r.Response,
		Code: r.Status, Error: r.Err, Took: r.Took, Held: r.Held,
	}
}

// sessionIn returns the source that koboshi inspect opens for an argument: for a folder, the
// address of the session of koboshi dev in it.
func sessionIn(argument string) (string, error) {
	if info, err := os.Stat(argument); err != nil || !info.IsDir() {
		return argument, nil //nolint:nilerr // package source reports what does not exist
	}
	folder := filepath.Join(argument, devDataDir)
	address, err := os.ReadFile(filepath.Join(folder, inspectorFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !devRuns(folder) {
		return "", fmt.Errorf("koboshi dev is not running in %s; start it there, or name a file or an address", argument)
	}
	if err != nil {
		return "", fmt.Errorf("finding the session of koboshi dev: %w", err)
	}
	return strings.TrimSpace(string(address)), nil
}
