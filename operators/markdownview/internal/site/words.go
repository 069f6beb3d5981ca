package site

import (
	"encoding/json"
	"fmt"
	"strings"
)

// words holds the site's own texts in one language. noResult is formatted with the query;
// foundOne and foundMany are formatted with the number of results and the query.
type words struct {
	Skip, Navigation, Search, Dark, LightOrDark, Contents, Close string
	Trail, Turn, Previous, Next, OnThisPage                      string
	NotRendered, SourceBelow, NotFound, NotFoundText, FirstPage  string
	AskQuery, noResult, foundOne, foundMany                      string
	// script holds the texts that site.js shows.
	script scriptWords
}

// scriptWords are the texts of site.js. Many has %d for the number of results.
type scriptWords struct {
	Copy       string `json:"copy"`
	Copied     string `json:"copied"`
	NotAllowed string `json:"notAllowed"`
	Results    string `json:"results"`
	None       string `json:"none"`
	One        string `json:"one"`
	Many       string `json:"many"`
}

var english = words{
	Skip: "Skip to the text", Navigation: "Navigation", Search: "Search", Dark: "Dark theme",
	LightOrDark: "Light or dark", Contents: "Contents", Close: "Close the navigation",
	Trail: "Where this page is", Turn: "Previous and next page", Previous: "Previous", Next: "Next",
	OnThisPage:  "On this page",
	NotRendered: "This page could not be rendered.", SourceBelow: "Below is its source.",
	NotFound:     "Page not found",
	NotFoundText: "There is nothing at this address. The page may have been moved or renamed: try the navigation or the search.",
	FirstPage:    "Go to the first page.",
	AskQuery:     "Enter a search term in the field at the top.",
	noResult:     "This site does not contain “%s”. Try fewer or shorter words.",
	foundOne:     "%d result for “%s”.", foundMany: "%d results for “%s”.",
	script: scriptWords{
		Copy: "Copy", Copied: "Copied", NotAllowed: "Not allowed",
		Results: "Results", None: "Nothing found.", One: "1 result", Many: "%d results",
	},
}

var japanese = words{
	Skip: "本文へ移動", Navigation: "ナビゲーション", Search: "検索", Dark: "ダークテーマ",
	LightOrDark: "ライトとダークを切り替える", Contents: "目次", Close: "ナビゲーションを閉じる",
	Trail: "現在のページの位置", Turn: "前後のページ", Previous: "前へ", Next: "次へ",
	OnThisPage:  "このページの内容",
	NotRendered: "このページを表示用に変換できませんでした。", SourceBelow: "以下は元のテキストです。",
	NotFound:     "ページが見つかりません",
	NotFoundText: "このアドレスにページはありません。移動または名前の変更があった可能性があります。ナビゲーションか検索をお使いください。",
	FirstPage:    "最初のページへ",
	AskQuery:     "上の欄に検索する言葉を入力してください。",
	noResult:     "「%s」は見つかりませんでした。言葉を減らすか、短くしてお試しください。",
	foundOne:     "%d 件見つかりました：「%s」", foundMany: "%d 件見つかりました：「%s」",
	script: scriptWords{
		Copy: "コピー", Copied: "コピーしました", NotAllowed: "コピーできません",
		Results: "検索結果", None: "見つかりませんでした。", One: "1 件", Many: "%d 件",
	},
}

// wordsOf returns the texts for a BCP 47 tag. If the language has no texts, wordsOf returns the
// English texts.
func wordsOf(language string) words {
	if primary, _, _ := strings.Cut(language, "-"); strings.EqualFold(primary, "ja") {
		return japanese
	}
	return english
}

// NoResult returns the text for a search without results.
func (w words) NoResult(query string) string { return fmt.Sprintf(w.noResult, query) }

// Found returns the text above the results of a search.
func (w words) Found(n int, query string) string {
	if n == 1 {
		return fmt.Sprintf(w.foundOne, n, query)
	}
	return fmt.Sprintf(w.foundMany, n, query)
}

// ScriptWords returns the JSON of the texts for site.js.
func (f *frame) ScriptWords() string {
	text, err := json.Marshal(f.Words.script)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return string(text)
}
