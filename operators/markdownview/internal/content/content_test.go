package content

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

func source(name, path string, items ...viewv1.ContentItem) viewv1.ContentSource {
	return viewv1.ContentSource{Path: path, ConfigMap: viewv1.ConfigMapSource{Name: name, Items: items}}
}

func TestFilesOfTheSpecWinOverThoseOfConfigMapsAndLaterOverEarlier(t *testing.T) {
	spec := &viewv1.MarkdownViewSpec{
		Markdowns:    map[string]string{"a.md": "spec"},
		BinaryAssets: map[string][]byte{"img/x.png": {0xff}},
		ContentFrom: []viewv1.ContentSource{
			source("one", ""), source("two", "", viewv1.ContentItem{Key: "b.md"}, viewv1.ContentItem{Key: "c.md", Path: "deep/er/d.md"}),
			source("two", "dir", viewv1.ContentItem{Key: "raw"}),
		},
	}
	got, err := Collect(spec, map[string]*corev1.ConfigMap{
		"one": {Data: map[string]string{"a.md": "one", "b.md": "one"}},
		"two": {Data: map[string]string{"a.md": "two", "b.md": "two", "c.md": "two"}, BinaryData: map[string][]byte{"raw": {1}}},
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []book.File{
		{Path: "a.md", Data: []byte("spec")}, {Path: "b.md", Data: []byte("two")}, {Path: "deep/er/d.md", Data: []byte("two")},
		{Path: "dir/raw", Data: []byte{1}}, {Path: "img/x.png", Data: []byte{0xff}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatMakesNoSiteIsRefusedWithAReason(t *testing.T) {
	page := map[string]string{"a.md": "a"}
	optional := source("none", "")
	optional.ConfigMap.Optional = true
	for _, tc := range []struct {
		name   string
		spec   viewv1.MarkdownViewSpec
		reason string
		names  string
	}{
		{"a ConfigMap is missing", viewv1.MarkdownViewSpec{Markdowns: page, ContentFrom: []viewv1.ContentSource{source("none", "")}}, viewv1.ReasonContentMissing, `"none"`},
		{"a key is missing", viewv1.MarkdownViewSpec{ContentFrom: []viewv1.ContentSource{source("cm", "", viewv1.ContentItem{Key: "x"})}}, viewv1.ReasonContentMissing, `"x"`},
		{"an optional ConfigMap is missing and there are no other files", viewv1.MarkdownViewSpec{ContentFrom: []viewv1.ContentSource{optional}}, viewv1.ReasonContentMissing, "no file"},
		{"a file is a directory", viewv1.MarkdownViewSpec{Markdowns: map[string]string{"a/b/c.md": "", "a/b": ""}}, viewv1.ReasonContentInvalid, `"a/b"`},
		{"a path occurs twice", viewv1.MarkdownViewSpec{Markdowns: page, BinaryAssets: map[string][]byte{"a.md": nil}}, viewv1.ReasonContentInvalid, `"a.md"`},
		{"a path is long", viewv1.MarkdownViewSpec{ContentFrom: []viewv1.ContentSource{source("cm", strings.Repeat("d", 240))}}, viewv1.ReasonContentInvalid, "245"},
		{"a file is big", viewv1.MarkdownViewSpec{Markdowns: map[string]string{"a.md": strings.Repeat("x", 1<<20+1)}}, viewv1.ReasonContentTooLarge, `"a.md"`},
		{"all files together are big", viewv1.MarkdownViewSpec{Markdowns: map[string]string{"a": strings.Repeat("x", 1<<20), "b": strings.Repeat("x", 1<<20), "c": "x"}}, viewv1.ReasonContentTooLarge, "2097153"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Collect(&tc.spec, map[string]*corev1.ConfigMap{"cm": {Data: page}}, 2<<20)
			var wrong *Error
			if !errors.As(err, &wrong) || wrong.Reason != tc.reason || !strings.Contains(wrong.Message, tc.names) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheHashTellsAnyTwoContentsApart(t *testing.T) {
	seen := map[string]string{}
	for name, files := range map[string][]book.File{
		"one":           {{Path: "a", Data: []byte("b")}},
		"other data":    {{Path: "a", Data: []byte("c")}},
		"other path":    {{Path: "b", Data: []byte("b")}},
		"moved borders": {{Path: "ab", Data: nil}},
		"two":           {{Path: "a", Data: []byte("b")}, {Path: "c"}},
		"none":          nil,
	} {
		h := Hash(files)
		if other, dup := seen[h]; dup || len(h) != hashLength {
			t.Errorf("%s has the hash %s, as does %s", name, h, other)
		}
		seen[h] = name
		if Hash(files) != h {
			t.Errorf("%s has a different hash at the second call", name)
		}
	}
}

func TestPacksHoldEveryFileOnceAndNoMoreThanAConfigMapMay(t *testing.T) {
	var files []book.File
	for i, size := range []int{1, 899_998, 1, 1, maxFile, 0, 500_000, 500_000} {
		files = append(files, book.File{Path: fmt.Sprint(i), Data: bytes.Repeat([]byte("x"), size)})
	}
	var got []string
	for _, pack := range Packs(files) {
		size, keys := 0, map[string]bool{}
		for _, item := range pack.Items {
			size += len(item.File.Data)
			keys[item.Key] = true
			got = append(got, item.File.Path)
		}
		if size > maxFile || len(keys) != len(pack.Items) {
			t.Errorf("%d bytes under %d keys", size, len(keys))
		}
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5", "6", "7"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(Packs(files)); n != 5 {
		t.Errorf("%d ConfigMaps", n)
	}
}
