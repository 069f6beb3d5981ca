package scenario

import (
	"maps"
	"strings"
	"testing"
)

const withPods = `apiVersion: check.koboshi.dev/v1
kind: Scenario
name: pods
endpoints:
- {name: admin, url: "http://127.0.0.1:1"}
pods:
- name: sample-*
  container: db
  exec:
  - {command: [db, status, "*"], stdout: "ok\n"}
  - {command: [db], stderr: failed, exitCode: 3}
  ports:
  - {port: 8080, endpoint: admin}
- namespace: other
  exec:
  - {command: [sh, -c, "*reload*"]}
steps:
- name: a
  run: ["true"]
`

func TestTheFirstAnswerThatMatchesCounts(t *testing.T) {
	all, err := Parse("pods.yaml", []byte(withPods))
	if err != nil {
		t.Fatal(err)
	}
	s := all[0]
	for command, want := range map[string]string{
		"default sample-0 db: db status all --now": "ok\n",
		"default sample-0 db: db status":           "failed",
		"default sample-0 db: db":                  "failed",
		"default sample-0 proxy: db":               "none",
		"default example-0 db: db":                 "none",
		"default sample-0 db: DB":                  "none",
		"other x y: sh -c nginx;reload;exit":       "",
		"other x y: sh -c stop":                    "none",
		"other x y: sh":                            "none",
	} {
		where, words, _ := strings.Cut(command, ": ")
		at := strings.Fields(where)
		answer, ok := s.Executed(at[0], at[1], at[2], strings.Fields(words))
		got := answer.Stdout + answer.Stderr
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	for pod, want := range map[string]map[int32]string{"sample-1": {8080: "admin"}, "other": {}} {
		if got := s.Forwarded("default", pod); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", pod, got, want)
		}
	}
}

func TestAMistakeInAnAnswerIsNamedWithItsLine(t *testing.T) {
	for change, want := range map[string]string{
		"exitCode: 3 > exitCode: 300":   "pods.yaml:11: pods[0].exec[1].exitCode: 300 is not between 0 and 255",
		"endpoint: admin > endpoint: x": "pods.yaml:13: pods[0].ports[0].endpoint: x: unknown endpoint",
		"port: 8080 > port: 0":          "pods.yaml:13: pods[0].ports[0].port: 0: must be between 1 and 65535",
		"command: [db] > command: []":   "pods.yaml:11: pods[0].exec[1].command",
		"stdout > output":               "pods.yaml:10: pods[0].exec[0].output: unknown field",
	} {
		before, after, _ := strings.Cut(change, " > ")
		if _, err := Parse("pods.yaml", []byte(strings.Replace(withPods, before, after, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant %s", change, err, want)
		}
	}
}

func TestAStarStandsForAnyText(t *testing.T) {
	for pattern, texts := range map[string][2]string{ // those that match, and those that do not
		"*":     {" a abc", ""},
		"a*":    {"a ab", "ba b"},
		"*a":    {"a ba", "ab b"},
		"a*b*c": {"abc aXbYc abcbc", "ab acb bc"},
		"a*a":   {"aa aba", "a"},
		"a":     {"a", "aa"},
	} {
		for i, list := range texts {
			for _, text := range strings.Fields(list) {
				if like(pattern, text) != (i == 0) {
					t.Errorf("%s, %s: %t", pattern, text, i != 0)
				}
			}
		}
	}
}
