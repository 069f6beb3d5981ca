// Package scrub removes known secret values from texts before they leave a lab.
package scrub

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Known holds the secret values of this process. A process has only one lab, and a value may
// appear in anything that the lab prints, writes or answers.
var Known Set

const (
	// shortest is the minimum length, in bytes, of a value that is removed. A shorter value may
	// occur in any text by chance.
	shortest = 6
	// shortestWord is the minimum length of a value that looks like an ordinary word or number,
	// such as "default" or "100000".
	shortestWord = 16
	// shortestLine is the minimum length of one line of a value with several lines.
	shortestLine = 16
	// most limits the number of values that are known. Controllers may create new Secrets in
	// each of many runs.
	most = 20_000
	// mark replaces a value.
	mark = "[secret value]"
)

var word = regexp.MustCompile(`^([a-z]+([-./:_ ][a-z]+)*|[0-9.]+)$`)

// Set is a set of secret values. The zero value is empty. A Set is safe for concurrent use.
type Set struct {
	mu sync.Mutex
	// Values that were added and not seen for a long time are forgotten: when recent is full, its
	// values replace those in older.
	kept, recent, older map[string]bool
	public              map[string]bool // names of objects, which are not secret
	replacer            *strings.Replacer
}

// Keep adds values that are removed for as long as the process runs.
func (s *Set) Keep(values ...string) { s.add(true, values) }

// Add adds values. If there are very many values, the oldest ones are forgotten, but never those of
// the last runs.
func (s *Set) Add(values ...string) { s.add(false, values) }

func (s *Set) add(kept bool, values []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		for _, part := range parts(value) {
			if s.kept[part] || !kept && (s.recent[part] || s.public[part]) {
				continue
			}
			if !s.older[part] && !s.recent[part] {
				s.replacer = nil
			}
			if kept {
				put(&s.kept, part)
				continue
			}
			if len(s.recent) >= most/2 {
				s.recent, s.older = nil, s.recent
			}
			put(&s.recent, part)
		}
	}
}

// Name makes a value public, because it is the name of an object. A Secret that holds the name of a
// user often has that name itself, and a report that hides the name cannot be understood. A value
// that was added with Keep stays secret.
func (s *Set) Name(name string) {
	if Ordinary(name) {
		return // never removed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent[name] || s.older[name] {
		delete(s.recent, name)
		delete(s.older, name)
		s.replacer = nil
	}
	if len(s.public) >= most {
		s.public = nil
	}
	put(&s.public, name)
}

func put(set *map[string]bool, value string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[value] = true
}

// Ordinary reports whether a value is so short, or looks so much like an ordinary word or
// number, that texts may contain it for another reason.
func Ordinary(value string) bool {
	return len(value) < shortest || len(value) < shortestWord && word.MatchString(value)
}

// parts returns the value, and its lines if there are several, but only parts that are long enough.
func parts(value string) (all []string) {
	value = strings.TrimSpace(value)
	if !Ordinary(value) {
		all = append(all, value)
	}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			// The lines around a key or a certificate are the same everywhere.
			if line = strings.TrimSpace(line); len(line) >= shortestLine && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	return all
}

// Text replaces all values in a text, which may be JSON. It also replaces values in base64
// and values that are quoted as in JSON.
func (s *Set) Text(text string) string {
	s.mu.Lock()
	if s.replacer == nil {
		s.replacer = s.newReplacer()
	}
	replacer := s.replacer
	s.mu.Unlock()
	return replacer.Replace(text)
}

func (s *Set) newReplacer() *strings.Replacer {
	var values []string
	for _, set := range []map[string]bool{s.kept, s.recent, s.older} {
		for value := range set {
			values = append(values, forms(value)...)
		}
	}
	// A value that contains another value is replaced before the other value.
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, value := range slices.Compact(values) {
		pairs = append(pairs, value, mark)
	}
	return strings.NewReplacer(pairs...)
}

// forms returns the ways in which programs write a value.
func forms(value string) []string {
	encoded := base64.StdEncoding.EncodeToString([]byte(value))
	all := []string{value, encoded, strings.TrimRight(encoded, "=")}
	for _, escape := range []bool{false, true} {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(escape)
		if encoder.Encode(value) == nil {
			all = append(all, strings.Trim(strings.TrimSpace(b.String()), `"`))
		}
	}
	return all
}

// JSON replaces all values in a value that can be converted to JSON and back.
func JSON[T any](s *Set, value *T) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var clean T
	if err := json.Unmarshal([]byte(s.Text(string(data))), &clean); err != nil {
		return err
	}
	*value = clean
	return nil
}
