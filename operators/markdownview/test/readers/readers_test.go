package readers

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestTextOfTwoEditionsIsAnError(t *testing.T) {
	if got, err := EditionOf([]byte(Mark(7) + " and " + Mark(7))); got != 7 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for _, text := range []string{Mark(7) + Mark(8), "none", ""} {
		if got, err := EditionOf([]byte(text)); err == nil {
			t.Errorf("%q is taken to be of edition %d", text, got)
		}
	}
}

func TestAllFilesOfABookHaveItsMark(t *testing.T) {
	book := Book(3, 12)
	if len(book) != 14 {
		t.Errorf("%d files, want 12 pages, SUMMARY.md and an asset", len(book))
	}
	for path, text := range book {
		if got, err := EditionOf([]byte(text)); got != 3 || err != nil {
			t.Errorf("%s: %d, %v", path, got, err)
		}
	}
}

// many reports whether the readers have sent enough requests.
func many(r Report) bool { return r.Requests >= 60 }

// crowdAt lets a crowd read a site until enough returns true; next returns the status and the
// edition of the site's nth response.
func crowdAt(t *testing.T, next func(n int) (status, edition int), enough func(Report) bool) Report {
	t.Helper()
	var count atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, edition := next(int(count.Add(1)))
		w.WriteHeader(status)
		_, _ = w.Write([]byte(Mark(edition) + `<link rel="next" href="/` + strconv.Itoa(edition) + `">`))
	}))
	defer server.Close()
	crowd, err := Gather(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	for !enough(crowd.Report()) {
		select {
		case <-deadline:
			t.Fatalf("the readers have not read enough: %+v", crowd.Report())
		case <-time.After(time.Millisecond):
		}
	}
	return crowd.Disperse()
}

func TestReadersOfASiteThatMovesOnOnceMeetNothing(t *testing.T) {
	r := crowdAt(t, func(n int) (int, int) { return http.StatusOK, n / 1000 }, many)
	if r.Failed+r.Mixed > 0 || len(r.Told) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestReadersNoticeAnAnswerThatIsNoSuccess(t *testing.T) {
	r := crowdAt(t, func(n int) (int, int) {
		if n == 20 {
			return http.StatusServiceUnavailable, 1
		}
		return http.StatusOK, 1
	}, func(r Report) bool { return many(r) && r.Failed > 0 })
	if r.Failed != 1 || r.Mixed != 0 || len(r.Told) != 1 || !strings.Contains(r.Told[0], "503") {
		t.Errorf("%+v", r)
	}
}

func TestReadersNoticeAnOldPageAfterANewOne(t *testing.T) {
	r := crowdAt(t, func(n int) (int, int) { return http.StatusOK, n % 2 }, many)
	if r.Mixed == 0 || r.Failed != 0 {
		t.Errorf("%+v", r)
	}
}
