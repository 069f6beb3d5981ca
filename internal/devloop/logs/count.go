package logs

import (
	"cmp"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/logline"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

// Counts holds the number of errors and warnings in a part of a log.
type Counts struct {
	Errors, Warnings int
	// Messages groups the errors, the most frequent one first. If there are very many different
	// messages, the later ones are missing.
	Messages []Message
}

// Message is an error that was logged Count times.
type Message struct {
	Text  string
	Count int
}

// String returns a text such as "3 errors and 1 warning". It is empty if there are none.
func (c Counts) String() string {
	switch {
	case c.Warnings == 0 && c.Errors == 0:
		return ""
	case c.Warnings == 0:
		return noun.Count(c.Errors, "error")
	case c.Errors == 0:
		return noun.Count(c.Warnings, "warning")
	}
	return noun.Count(c.Errors, "error") + " and " + noun.Count(c.Warnings, "warning")
}

// Total returns the errors and warnings counted since the beginning.
func (p *Printer) Total() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total.counts()
}

// Recent returns the errors and warnings counted since the last call of Recent.
func (p *Printer) Recent() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush() // what is held is counted, too
	recent := p.current.counts()
	p.current = tally{}
	return recent
}

const (
	// mostMessages limits the number of different messages that are counted. Messages may
	// contain numbers that change each time.
	mostMessages = 1000
	// longestMessage is the maximum width of a message that is counted.
	longestMessage = 200
)

// tally counts errors and warnings.
type tally struct {
	errors, warnings int
	messages         map[string]int
}

func (p *Printer) count(l logline.Line) {
	switch l.Level {
	case logline.Error:
		text := l.Message
		if problem, _ := problemOf(&l); problem != "" {
			text += ": " + problem
		}
		text = textwidth.Short(visible(text[:min(len(text), 4*longestMessage)]), longestMessage, ellipsis)
		p.total.add(text)
		p.current.add(text)
	case logline.Warning:
		p.total.warnings++
		p.current.warnings++
	case logline.Unknown, logline.Debug, logline.Info:
	}
}

func (t *tally) add(text string) {
	t.errors++
	if t.messages == nil {
		t.messages = map[string]int{}
	}
	if t.messages[text] > 0 || len(t.messages) < mostMessages {
		t.messages[text]++
	}
}

func (t *tally) counts() Counts {
	c := Counts{Errors: t.errors, Warnings: t.warnings}
	for text, count := range t.messages {
		c.Messages = append(c.Messages, Message{text, count})
	}
	slices.SortFunc(c.Messages, func(a, b Message) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
	})
	return c
}
