package site

import (
	"reflect"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

func TestASiteIsInTheLanguageOfItsOptions(t *testing.T) {
	for _, tc := range []struct{ language, tag, next, notFound string }{
		{"", `lang="en"`, "<span>Next</span>", "Page not found"},
		{"ja", `lang="ja"`, "<span>次へ</span>", "ページが見つかりません"},
		{"ja-JP", `lang="ja-JP"`, "<span>次へ</span>", "ページが見つかりません"},
		{"de", `lang="de"`, "<span>Next</span>", "Page not found"},
	} {
		s, err := Build([]book.File{
			{Path: "README.md", Data: []byte("# 一\n")}, {Path: "two.md", Data: []byte("# 二\n")},
		}, Options{Language: tc.language})
		if err != nil {
			t.Fatal(err)
		}
		page := string(plainOf(s.resources["/"]))
		for _, want := range []string{"<html " + tc.tag, `<article class="mdv-text" ` + tc.tag, tc.next} {
			if !strings.Contains(page, want) {
				t.Errorf("%q: the page has no %s", tc.language, want)
			}
		}
		found, err := s.Search("二")
		if err != nil {
			t.Fatal(err)
		}
		if heading := "<h1>" + wordsOf(tc.language).Search + "</h1>"; !strings.Contains(string(plainOf(found)), heading) {
			t.Errorf("%q: the search page has no %s", tc.language, heading)
		}
		if missing := string(plainOf(s.notFound)); !strings.Contains(missing, tc.notFound) {
			t.Errorf("%q: the page for missing addresses has no %q", tc.language, tc.notFound)
		}
	}
}

func plainOf(r *Resource) []byte {
	var all []byte
	for _, p := range r.Plain.Body.pieces {
		all = append(all, p...)
	}
	return all
}

func TestALanguageIsATag(t *testing.T) {
	for _, language := range []string{"e", "日本語", `en" onload="x`, "en_US", strings.Repeat("abcd-", 8) + "e"} {
		if _, err := (Options{Language: language}).Complete(); err == nil || !strings.Contains(err.Error(), "BCP 47") {
			t.Errorf("%q: %v", language, err)
		}
	}
}

func TestEveryTextIsTranslated(t *testing.T) {
	e, j := reflect.ValueOf(english), reflect.ValueOf(japanese)
	var compare func(name string, a, b reflect.Value)
	compare = func(name string, a, b reflect.Value) {
		for i := range a.NumField() {
			field := name + a.Type().Field(i).Name
			if a.Field(i).Kind() == reflect.Struct {
				compare(field+".", a.Field(i), b.Field(i))
				continue
			}
			if x, y := a.Field(i).String(), b.Field(i).String(); x == "" || y == "" || x == y {
				t.Errorf("%s: %q and %q", field, x, y)
			}
		}
	}
	compare("", e, j)
}
