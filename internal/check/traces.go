package check

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// writeTrace keeps a trace for the process that asked.
func writeTrace(path string, entries []trace.Entry) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = trace.Write(file, trace.Header{Version: trace.Version, Started: time.Now()}, entries)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("writing the trace %s: %w", path, err)
	}
	return nil
}

// readTrace is nil where there is no trace: the run found nothing.
func readTrace(path string) []trace.Entry {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	_, entries, err := trace.Read(file)
	if err != nil {
		return nil
	}
	_ = os.Remove(path)
	return entries
}

// unused are the permissions that no scenario needed.
func (c *check) unused() (notes []string) {
	first := true
	for _, l := range c.lessons {
		if first {
			notes, first = slices.Clone(l.Unused), false
			continue
		}
		notes = slices.DeleteFunc(notes, func(note string) bool { return !slices.Contains(l.Unused, note) })
	}
	slices.Sort(notes)
	return notes
}
