// Package logs writes a program's output in the format of the logs that the
// kubelet reads (Kubernetes' design note kubelet-cri-logging):
//
//	2026-11-20T19:00:00.123456789Z stdout F a line
//	2026-11-20T19:00:00.123456789Z stdout P the first part of a long
//	2026-11-20T19:00:00.123456789Z stdout F  line
package logs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// These are the names of a program's output streams.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// maxLine is the size in bytes above which a line is written in parts. The value is containerd's
// default.
const maxLine = 16 << 10

// A File is a log file that can be reopened while it is being written.
type File struct {
	path string

	mu   sync.Mutex
	file *os.File
}

// Open opens the file for appending. Open creates the file and its folder if they do not exist.
func Open(path string) (*File, error) {
	f := &File{path: path}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating the log's folder: %w", err)
	}
	return f, f.Reopen()
}

// Reopen continues the log in a new file at the same path, after the old file
// has been renamed. If the new file cannot be opened, writing continues in the
// old file.
func (f *File) Reopen() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file = file
	return nil
}

// Close ends the log.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}

// line writes one entry in a single call; tag is F for a complete line or its
// last part, and P for any other part.
func (f *File) line(buffer []byte, stream, tag string, text []byte) []byte {
	buffer = time.Now().UTC().AppendFormat(buffer[:0], time.RFC3339Nano)
	buffer = append(buffer, ' ')
	buffer = append(append(buffer, stream...), ' ')
	buffer = append(append(buffer, tag...), ' ')
	buffer = append(append(buffer, text...), '\n')
	f.mu.Lock()
	defer f.mu.Unlock()
	// If the disk is full, lines are lost, but the program must not stop.
	_, _ = f.file.Write(buffer)
	return buffer
}

// Copy logs everything from the reader until its end. As in containerd, a last
// line without a line break gets the tag P.
func (f *File) Copy(stream string, from io.Reader) error {
	reader := bufio.NewReaderSize(from, maxLine)
	var buffer []byte
	for {
		text, err := reader.ReadSlice('\n')
		if len(text) > 0 {
			tag := "P"
			if text[len(text)-1] == '\n' {
				tag, text = "F", text[:len(text)-1]
			}
			buffer = f.line(buffer, stream, tag, text)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
