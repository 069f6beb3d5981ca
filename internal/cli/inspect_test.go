package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/inspect"
)

const recordedSession = "../inspect/testdata/session.trace.jsonl"

func TestTheFirstScreenOfInspectNamesATimestampThatIsWrittenOnEachReconcile(t *testing.T) {
	code, stdout, stderr := run(t, "inspect", recordedSession)
	if code != exitOK || stderr != "" || !strings.Contains(stdout, "! status.lastSync of Widget default/demo changes with each write") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

func TestEveryQuestionIsACommandWithTextAndJSON(t *testing.T) {
	for _, q := range inspect.Questions {
		if q.Name == "overview" {
			continue
		}
		args := []string{"inspect", q.Name, recordedSession}
		switch {
		case q.About != inspect.None:
			args = append(args, "widget/demo")
		case q.Name == "entry":
			args = append(args, "5")
		}
		if code, stdout, stderr := run(t, args...); code != exitOK || stdout == "" || stderr != "" {
			t.Errorf("%q: exit code %d, %s%s", args, code, stdout, stderr)
		}
		code, stdout, stderr := run(t, append(args, "-o", "json")...)
		if code != exitOK || json.Unmarshal([]byte(stdout), q.New()) != nil {
			t.Errorf("%q: exit code %d, %s%s", args, code, stdout, stderr)
		}
	}
}

func TestExportedSessionCanBeInspected(t *testing.T) {
	file := filepath.Join(t.TempDir(), "copy.jsonl")
	code, _, stderr := run(t, "inspect", "export", recordedSession, file)
	if code != exitOK || !strings.Contains(stderr, "koboshi inspect "+file) {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if code, stdout, _ := run(t, "inspect", "diff", file, "deployment/demo"); code != exitOK || !strings.Contains(stdout, "+ status.readyReplicas: 2") {
		t.Errorf("exit code %d, %s", code, stdout)
	}
}

func TestAMistakeInInspectIsAUsageErrorThatNamesTheNextStep(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"inspect"}, exitUsage, "see koboshi inspect --help"},
		{[]string{"inspect", "--"}, exitUsage, "there is no command after --"},
		{[]string{"inspect", "--kubeconfig", "nowhere", "--", "true"}, exitUsage, "name one with --kubeconfig"},
		{[]string{"inspect", "page", "nowhere"}, exitUsage, "name the file of a trace"},
		{[]string{"inspect", "nowhere"}, exitUsage, "name the file of a trace"},
		{[]string{"inspect", "why", recordedSession, "-o", "yaml"}, exitUsage, "choose text or json"},
		{[]string{"inspect", "why", recordedSession, "--follow"}, exitUsage, "needs the address of a running session"},
		{[]string{"inspect", "diff", recordedSession}, exitUsage, "SOURCE KIND/NAME"},
		{[]string{"inspect", "entry", recordedSession, "x"}, exitUsage, "is not the number of an entry"},
		{[]string{"inspect", "replay", recordedSession}, exitUsage, "takes SOURCE and NUMBER"},
		{[]string{"inspect", "replay", recordedSession, "0"}, exitUsage, "is not the number of an entry"},
		{[]string{"inspect", "replay", recordedSession, "2"}, exitUsage, "is a recording, which cannot call webhooks"},
		{[]string{"inspect", "owners", recordedSession, "pod/x"}, exitError, "koboshi inspect objects lists"},
		{[]string{"inspect", "diff", recordedSession, "widget/demo", "--to", "999"}, exitError, "its versions are [10 13"},
	} {
		if code, _, stderr := run(t, c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, %s", c.args, code, stderr)
		}
	}
}
