package session

import (
	"context"
	"os"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/devloop/instrument"
)

// instrumented holds the flags of a build with an instrumented controller-runtime, and the contents
// of the files from which they follow.
type instrumented struct {
	flags []string
	from  string
}

// instrument returns the flags of go build for a main package of a module. They are prepared again only when the
// module's requirements have changed, because that takes longer than most builds.
func (s *Session) instrument(ctx context.Context, dir, main string) ([]string, error) {
	if !s.o.Instrument {
		return nil, nil
	}
	from := dir + "\x00" + main
	for _, name := range []string{"go.mod", "go.sum", "vendor/modules.txt"} {
		data, _ := os.ReadFile(filepath.Join(dir, name)) // a file that is missing is part of the state
		from += "\x00" + string(data)
	}
	if s.instrumented.from == from {
		return s.instrumented.flags, nil
	}
	flags, err := instrument.Prepare(ctx, dir, main, filepath.Join(s.o.Dir, "instrumented"))
	if err != nil {
		return nil, err
	}
	s.instrumented = instrumented{flags, from}
	return flags, nil
}

// receive starts to receive the reports of a process that is about to start.
func (s *Session) receive(c *child) (err error) {
	if s.o.Instrument && s.o.Recording.Log != nil {
		c.reports, err = instrument.Listen(s.o.Recording.Log, c.name)
	}
	return err
}
