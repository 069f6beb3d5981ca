package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestOutputCountsTestsAndKeepsOnlyWhatFailed(t *testing.T) {
	lines := `make: entering
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestGood","Output":"quiet\n"}
{"Action":"run","Package":"p","Test":"TestBad"}
{"Action":"output","Package":"p","Test":"TestBad/case","Output":"    bad_test.go:7: no\n"}
{"Action":"fail","Package":"p","Test":"TestBad/case"}
{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"fail","Package":"p","Test":"TestBad"}
{"Action":"run","Package":"p","Test":"TestCutOff"}
{"Action":"output","Package":"p","Test":"TestCutOff","Output":"panic: gone\n"}
{"Action":"skip","Package":"p","Test":"TestSkipped"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
{"ImportPath":"q","Action":"build-output","Output":"q.go:1:1: syntax error\n"}
{"not":"an event"}
bugs: 6 passed, 1 failed
last line without an end`
	for _, chunk := range []int{1, 7, len(lines)} {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			var log bytes.Buffer
			o := newOutput(&log)
			for rest := []byte(lines); len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
				if _, err := o.Write(rest[:min(chunk, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := o.close(); err != nil {
				t.Fatal(err)
			}
			if want := 2 + 7; o.tests != want {
				t.Errorf("counted %d tests, want %d", o.tests, want)
			}
			failure := string(o.failure())
			for _, want := range []string{"make: entering", "bad_test.go:7: no", "panic: gone", "FAIL\tp", "syntax error", `{"not"`, "last line"} {
				if !strings.Contains(failure, want) {
					t.Errorf("the failure lacks %q:\n%s", want, failure)
				}
			}
			if strings.Contains(failure, "quiet") {
				t.Errorf("the failure contains the output of a test that passed:\n%s", failure)
			}
			if !strings.Contains(log.String(), "quiet") {
				t.Errorf("the log lacks the output of a test that passed:\n%s", log.String())
			}
		})
	}
}

func TestOutputCountsTheSpecsOfGinkgo(t *testing.T) {
	o := newOutput(&bytes.Buffer{})
	fmt.Fprintln(o, `{"Action":"output","Package":"p","Test":"TestAPIs","Output":"Ran 12 of 13 Specs in 4.2 seconds\n"}`)
	fmt.Fprintln(o, `{"Action":"pass","Package":"p","Test":"TestAPIs"}`)
	if o.tests != 13 {
		t.Errorf("counted %d tests, want 12 specs and the test that runs them", o.tests)
	}
}
