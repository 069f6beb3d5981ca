package report

import (
	"math"
	"slices"
	"time"
)

// strip is a timeline drawn as a small picture, with four lanes and time from left to
// right. X is in thousandths of the run's duration, and Y is in pixels.
type strip struct {
	Lanes  []string
	Height int
	Bars   []bar
	Marks  []mark
	Took   string
}

type bar struct {
	X, Width, Y int
	Class       sort
	Title       string
}

type mark struct {
	X, Y   int
	Height int
	Class  sort
	Title  string
}

const (
	stripWidth = 1000
	laneHeight = 18
	markWidth  = 2 // as in the template
)

var lanes = []string{"process", "writes", "watch", "fault"}

func laneOf(s sort) int {
	switch s {
	case ofProcess, ofStep:
		return 0
	case ofWrite, ofRead:
		return 1
	case ofWatch:
		return 2
	}
	return 3
}

func stripOf(t timeline) strip {
	s := strip{Lanes: lanes, Height: laneHeight * len(lanes), Took: span(t.Took)}
	s.Bars = lives(t)
	type place struct {
		x, lane int
		class   sort
	}
	drawn := map[place]bool{}
	for _, r := range t.Rows {
		lane := laneOf(r.Sort)
		at := place{min(across(r.At, t.Took), stripWidth-markWidth), lane, r.Sort}
		if r.Sort == ofProcess || drawn[at] {
			continue
		}
		drawn[at] = true
		m := mark{X: at.x, Y: lane*laneHeight + 3, Height: laneHeight - 6, Class: r.Sort, Title: r.Offset() + " " + r.What}
		if r.Sort == ofFault || r.Sort == ofStep {
			m.Y, m.Height = 0, s.Height
		}
		s.Marks = append(s.Marks, m)
	}
	// Draw the marks that cross all lanes first, so that they hide no other marks.
	slices.SortStableFunc(s.Marks, func(a, b mark) int { return b.Height - a.Height })
	return s
}

// lives returns the periods in which each instance ran. An instance whose start is not
// among the rows is assumed to have run from the beginning.
func lives(t timeline) []bar {
	var bars []bar
	running := map[string]time.Duration{}
	var order []string
	end := func(who string, from, to time.Duration) {
		x := across(from, t.Took)
		bars = append(bars, bar{X: x, Width: max(across(to, t.Took)-x, 1), Y: 5, Class: ofProcess,
			Title: who + " ran from " + row{At: from}.Offset() + " to " + row{At: to}.Offset()})
	}
	for _, r := range t.Rows {
		switch {
		case r.Sort != ofProcess:
		case r.What == "started":
			running[r.Who] = r.At
			order = append(order, r.Who)
		default:
			end(r.Who, running[r.Who], r.At)
			delete(running, r.Who)
		}
	}
	for _, who := range order {
		if from, still := running[who]; still {
			end(who, from, t.Took)
			delete(running, who)
		}
	}
	return bars
}

func across(at, took time.Duration) int {
	if took <= 0 {
		return 0
	}
	return int(math.Round(stripWidth * float64(at) / float64(took)))
}
