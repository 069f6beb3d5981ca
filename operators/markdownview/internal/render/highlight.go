package render

import (
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Code blocks that exceed these limits get no colors. A block that exceeds a limit is
// usually data that nobody reads, or contains a pattern that its lexer handles slowly.
const (
	mostHighlighted = 64 << 10
	longestLexing   = 500 * time.Millisecond
)

// highlight wraps the tokens of a code block in spans. The style sheet gives each class of spans a
// color.
func highlight(pre *html.Node) {
	code := pre.FirstChild
	if code == nil || code.DataAtom != atom.Code || code.NextSibling != nil {
		return
	}
	text := code.FirstChild
	if text == nil || text.Type != html.TextNode || text.NextSibling != nil || len(text.Data) > mostHighlighted {
		return
	}
	class, _ := get(code, "class")
	language, ok := strings.CutPrefix(class, "language-")
	if !ok {
		return
	}
	// mdBook allows options after the language: rust,ignore or js {1,3}.
	language = strings.FieldsFunc(language+" ", func(c rune) bool { return c == ',' || c == '{' || c == ' ' })[0]
	set(code, "class", "language-"+language)
	lexer := lexers.Get(language)
	if lexer == nil {
		return
	}
	spans, ok := lex(chroma.Coalesce(lexer), text.Data)
	if !ok {
		return
	}
	code.RemoveChild(text)
	for _, s := range spans {
		code.AppendChild(s)
	}
}

func lex(lexer chroma.Lexer, source string) (spans []*html.Node, ok bool) {
	tokens, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, source)
	if err != nil {
		return nil, false
	}
	deadline := time.Now().Add(longestLexing)
	length := 0
	for token := tokens(); token != chroma.EOF; token = tokens() {
		if time.Now().After(deadline) {
			return nil, false
		}
		length += len(token.Value)
		text := &html.Node{Type: html.TextNode, Data: token.Value}
		class := tokenClass(token.Type)
		if class == "" {
			spans = append(spans, text)
			continue
		}
		span := element(atom.Span, "class", class)
		span.AppendChild(text)
		spans = append(spans, span)
	}
	// The output of the lexer is used only if it has the same length as the source.
	return spans, length == len(source)
}

// tokenClass returns the usual short name of a kind of token, or "" for kinds without a color.
func tokenClass(t chroma.TokenType) string {
	switch t {
	case chroma.Text, chroma.TextWhitespace, chroma.Other, chroma.Name, chroma.NameOther, chroma.Operator,
		chroma.Punctuation, chroma.Error, chroma.Background:
		return ""
	}
	for ; t > 0; t = t.Parent() {
		if class, ok := chroma.StandardTypes[t]; ok {
			return class
		}
	}
	return ""
}
