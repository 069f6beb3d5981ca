package logs

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLongLinesAreWrittenInPartsAndNothingIsLost(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 3*maxLine/16) + "end"
	path := filepath.Join(t.TempDir(), "dir", "log")
	log, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	// The reader returns one byte at a time, as if the program wrote very
	// slowly.
	if err := log.Copy(Stdout, oneByte{strings.NewReader("short\n" + long + "\n\nno end")}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var tags, content strings.Builder
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(parts) != 4 || parts[1] != Stdout || len(parts[3]) > maxLine {
			t.Fatalf("line %.100q", line)
		}
		tags.WriteString(parts[2])
		content.WriteString(parts[3])
		if parts[2] == "F" {
			content.WriteByte('\n')
		}
	}
	if got := tags.String(); got != "FPPPFFP" {
		t.Errorf("tags %s", got)
	}
	if content.String() != "short\n"+long+"\n\nno end" {
		t.Errorf("%d bytes, not what was written", content.Len())
	}
}

type oneByte struct{ io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.Reader.Read(p[:1]) }

func TestFailedReopenGoesOnInTheOldFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	log, err := Open(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := log.Reopen(); err == nil {
		t.Error("reopened without a folder")
	}
	if err := log.Copy(Stderr, strings.NewReader("kept\n")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir+".old", "log"))
	if err != nil || !strings.HasSuffix(string(text), " stderr F kept\n") {
		t.Errorf("%q, %v", text, err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}
