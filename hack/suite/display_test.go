package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSummaryRepeatsTheEndOfEachFailure(t *testing.T) {
	var long strings.Builder
	for i := range 2 * repeated {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	var out bytes.Buffer
	d := &display{out: &out, began: time.Now()}
	if failed := d.summary([]result{
		{target: "good", failure: []byte("of a part that passed\n")},
		{target: "bad", err: errors.New("exit status 2"), failure: []byte(long.String())},
		{target: "silent", err: errors.New("killed")},
	}); failed != 2 {
		t.Errorf("%d parts failed, want 2", failed)
	}
	first := fmt.Sprintf("-- the end of the output of bad:\nline %d\n", repeated)
	last := fmt.Sprintf("line %d\n\n-- the end of the output of silent:\n", 2*repeated-1)
	for _, want := range []string{first, last, "FAIL  bad", "ok    good"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "of a part that passed") {
		t.Errorf("the summary contains the output of a part that passed:\n%s", &out)
	}
}
