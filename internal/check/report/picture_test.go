package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	images "github.com/koboshi-dev/koboshi/internal/picture"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	// picture is the image of a report in the READMEs: the report of make demo. The report and its
	// trace are in the folder pictured, with the hash of the page that was photographed.
	picture  = "../../../docs/images/report.png"
	pictured = "testdata/picture"
	// pageHash is the file with the hash of the page.
	pageHash = pictured + "/page.sha256"
	// mostPicture is the maximum size of the picture, in bytes.
	mostPicture = 150_000
	// pictureWidth is only slightly larger than the width of a README, so that the text stays
	// readable.
	pictureWidth, pictureHeight = 900, 1130
)

// If a change of the page or of the report makes the picture out of date, -update takes it
// again. Comparing pictures would not work, because fonts differ between machines.
func TestThePictureInTheREADMEsShowsTheReportAsItIsToday(t *testing.T) {
	page := picturedPage(t)
	sum := sha256.Sum256(page)
	hash := hex.EncodeToString(sum[:]) + "\n"
	if *update {
		if old, err := os.ReadFile(pageHash); err == nil && string(old) == hash {
			return
		}
		photograph(t, page)
		if err := os.WriteFile(pageHash, []byte(hash), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if photographed, err := os.ReadFile(pageHash); err != nil || string(photographed) != hash {
		t.Errorf("%s shows an earlier form of the page; go test ./internal/check/report -update takes it again, and needs chromium (%v)", picture, err)
	}
}

// picturedPage returns the page of the saved report.
func picturedPage(t *testing.T) []byte {
	t.Helper()
	r, err := ReadFile(filepath.Join(pictured, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(pictured, "trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, entries, err := trace.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || len(entries) == 0 {
		t.Fatalf("%d findings, %d entries in the trace", len(r.Findings), len(entries))
	}
	return written(t, func(b *bytes.Buffer) error {
		return r.WriteHTML(b, map[string][]trace.Entry{r.Findings[0].ID: entries})
	})
}

// photograph replaces the picture.
func photograph(t *testing.T, page []byte) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no chromium here: apt-get install chromium fonts-dejavu-core")
	}
	dir := t.TempDir()
	file, raw := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.png")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	address := url.URL{Scheme: "file", Path: file}
	cmd := exec.CommandContext(t.Context(), program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--force-device-scale-factor=1",
		fmt.Sprintf("--window-size=%d,%d", pictureWidth, pictureHeight), "--screenshot="+raw, address.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(raw)
	if err != nil {
		t.Fatal(err)
	}
	small, err := images.Reduce(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(picture, small, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBothREADMEsShowThePicture(t *testing.T) {
	data, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil || shown.Width != pictureWidth || shown.Height != pictureHeight || len(data) > mostPicture {
		t.Errorf("the picture has %d by %d pixels in %d bytes: %v", shown.Width, shown.Height, len(data), err)
	}
	for _, name := range []string{"README.md", "README.ja.md"} {
		text, err := os.ReadFile(filepath.Join("../../..", name))
		if err != nil {
			t.Fatal(err)
		}
		_, first, _ := strings.Cut(string(text), "![")
		description, rest, _ := strings.Cut(first, "](")
		if !strings.HasPrefix(rest, "docs/images/report.png)") || len(description) < 20 {
			t.Errorf("the first picture of %s is %.60q, described as %q", name, rest, description)
		}
	}
}
