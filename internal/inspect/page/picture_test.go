package page

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	images "github.com/koboshi-dev/koboshi/internal/picture"
)

var update = flag.Bool("update", false, "take the picture in the READMEs again if the page has changed")

const (
	// picture is the image of the inspector in the READMEs, and pictured the text on it.
	picture  = "../../../docs/images/inspector.png"
	pictured = "testdata/picture.txt"
	// mostPicture is the maximum size of the picture, in bytes.
	mostPicture = 100_000
)

// Comparing pictures would not work, because fonts differ between machines. So the text of the
// page is compared.
func TestThePictureInTheREADMEsShowsTheFirstScreenAsItIsToday(t *testing.T) {
	b := open(t, recorded(t), 1280, 800, false)
	b.shows(".notices", "status.lastSync of Widget default/demo changes with each write and nothing else does")
	b.shows(".card", "reconcile 5a1f-6")
	old, err := os.ReadFile(pictured)
	text := ""
	for same, end := 0, time.Now().Add(patience); same < 10 && time.Now().Before(end); {
		b.eval("new Promise((next) => setTimeout(next, 100))") // the page is filled step by step
		before := text
		if text = b.eval("document.body.innerText").(string) + "\n"; text == string(old) {
			return
		}
		if same++; text != before || !*update {
			same = 0
		}
	}
	if !*update {
		t.Fatalf("%s shows an earlier form of the page; go test ./internal/inspect/page -update takes it again (%v)", picture, err)
	}
	small, err := images.Reduce(b.screenshot())
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{picture: small, pictured: []byte(text)} {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBothREADMEsShowThePicture(t *testing.T) {
	if info, err := os.Stat(picture); err != nil || info.Size() > mostPicture {
		t.Errorf("%s is missing or has more than %d bytes: %v", picture, mostPicture, err)
	}
	for _, name := range []string{"README.md", "README.ja.md"} {
		text, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "](docs/images/inspector.png)") {
			t.Errorf("%s does not show %s", name, picture)
		}
	}
}
