package logs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/noun"
)

// stack collects the lines of a stack that zap prints after a line of its log: a function, then
// its file and line.
type stack struct {
	frames   []frame
	function []byte // the line of a function whose file has not followed yet
	size     int    // of all lines, in bytes
}

// frame is a function on a stack with its file, or another line of a stack without a file.
type frame struct{ function, file string }

var (
	functionLine = regexp.MustCompile(`^[\w./@~%-]+\.[^\s]+$`)
	fileLine     = regexp.MustCompile(`^\t(.+:\d+)(?: \+0x[0-9a-f]+)?$`)
)

// take adds a line to the stack if it belongs there, and reports whether it does.
func (s *stack) take(line []byte, text string) bool {
	if s.function == nil {
		if !functionLine.MatchString(text) {
			return false
		}
		s.function = slices.Clone(line)
		s.size += len(line)
		return true
	}
	m := fileLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	s.frames = append(s.frames, frame{strings.TrimSpace(string(s.function)), m[1]})
	s.function = nil
	s.size += len(line)
	return true
}

// framesOf splits the text of a stack into frames.
func framesOf(text string) (frames []frame) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := fileLine.FindStringSubmatch(line); m != nil && len(frames) > 0 && frames[len(frames)-1].file == "" {
			last := &frames[len(frames)-1]
			last.file = m[1]
			if at := strings.LastIndexByte(last.function, '('); at > 0 && strings.HasSuffix(last.function, ")") {
				last.function = last.function[:at] // the arguments are addresses
			}
			continue
		}
		if line != "" {
			frames = append(frames, frame{function: line})
		}
	}
	return frames
}

// libraries lists packages whose frames are folded, with their names.
var libraries = []struct{ prefix, name string }{
	{"sigs.k8s.io/controller-runtime/", "controller-runtime"},
	{"k8s.io/apimachinery/", "apimachinery"},
	{"k8s.io/client-go/", "client-go"},
	{"runtime.", "Go"},
	{"runtime/", "Go"},
	{"panic", "Go"},
}

// library returns the name of the library that a function belongs to, or "".
func (f frame) library() string {
	function := strings.TrimPrefix(f.function, "created by ")
	for _, l := range libraries {
		if f.file != "" && strings.HasPrefix(function, l.prefix) && (l.prefix != "panic" || function == "panic") {
			return l.name
		}
	}
	return ""
}

func (f frame) String() string {
	// Brackets may contain the path of another package.
	end := strings.IndexAny(f.function, "([")
	if end < 0 {
		end = len(f.function)
	}
	if f.file == "" {
		return visible(f.function)
	}
	short := f.function[strings.LastIndexByte(f.function[:end], '/')+1:]
	return visible(short) + "  " + visible(f.file)
}

// frames describes a stack, one frame per line. Frames of libraries are folded. A stack whose
// frames are all folded shows nothing, so it is mentioned only with the first hint at the flag.
func (p *Printer) frames(frames []frame) string {
	var b strings.Builder
	if p.hinted && !slices.ContainsFunc(frames, func(f frame) bool { return f.library() == "" }) {
		return ""
	}
	for len(frames) > 0 {
		folded := slices.IndexFunc(frames, func(f frame) bool { return f.library() == "" })
		switch folded {
		case 0:
			b.WriteString(indent + frames[0].String() + "\n")
			frames = frames[1:]
			continue
		case -1:
			folded = len(frames)
		}
		b.WriteString(indent + p.paint(dim, p.fold(frames[:folded])) + "\n")
		frames = frames[folded:]
	}
	return b.String()
}

// fold returns the line for frames that are not shown.
func (p *Printer) fold(frames []frame) string {
	var names []string
	for _, f := range frames {
		if name := f.library(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	text := fmt.Sprintf("%s of %s", noun.Count(len(frames), "frame"), strings.Join(names, " and "))
	if p.o.Unfold != "" && !p.hinted {
		p.hinted = true
		text += " (" + p.o.Unfold + " shows them)"
	}
	return text
}
