// Package jsonfile writes reports.
package jsonfile

import (
	"encoding/json"
	"fmt"
	"os"
)

// Write replaces a report's file by renaming, so that an interruption leaves the old file
// intact.
func Write(path string, report any) error {
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return os.Rename(next, path)
}
