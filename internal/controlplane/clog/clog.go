// Package clog gives each component of a plane its own log file.
//
// Upstream's components log through the global klog, through loggers carried in
// a context, through zap and through slog. This package directs the output of
// each logger to a file, so that nothing floods the terminal and an error can
// name the file to read.
package clog

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// Dir is the folder that holds the log files.
type Dir string

// Path names the log file of a component.
func (d Dir) Path(component string) string {
	return filepath.Join(string(d), component+".log")
}

// Open starts a new log file for component. Open keeps the file of the previous run in the same
// folder with the suffix .1, since that file may explain why the run ended.
func (d Dir) Open(component string) (*os.File, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, fmt.Errorf("creating log folder: %w", err)
	}
	path := d.Path(component)
	if err := os.Rename(path, path+".1"); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("renaming the previous log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	return f, nil
}

// Klog returns a logger in klog's own format. verbosity is klog's -v.
func Klog(w io.Writer, verbosity int) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(w), textlogger.Verbosity(verbosity)))
}

// Slog returns a structured text logger.
func Slog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, nil))
}

// Zap returns a logger in etcd's own format.
func Zap(w io.Writer, options ...zap.Option) *zap.Logger {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(w), zap.InfoLevel)
	return zap.New(core, options...)
}
