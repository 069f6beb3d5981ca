package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/devloop/session"
	"github.com/koboshi-dev/koboshi/internal/devloop/webhook"
	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestInspectFindsTheSessionOfDevInAFolder(t *testing.T) {
	project := t.TempDir()
	if _, err := openSource(project); err == nil || !strings.Contains(err.Error(), "start it there") {
		t.Errorf("without a session: %v", err)
	}
	kubeconfig, remove, err := devKubeconfig(project)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(kubeconfig)
	o := session.Options{}
	o.Project.Dir = project
	address, reviews, stop, err := inspectDev(t.Context(), &o, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	t.Cleanup(func() {
		if remove(); devRuns(folder) {
			t.Error("a session that has ended still counts as running")
		}
	})
	if info, err := os.Stat(filepath.Join(folder, inspectorFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the token: %v, %v", info, err)
	}
	if found, err := sessionIn(project); err != nil || found != address {
		t.Errorf("found %q, %v, want %q", found, err, address)
	}
	body := []byte(`{"kind":"AdmissionReview","request":{"kind":{"group":"x.io","kind":"Ship"},"namespace":"a","name":"s"}}`)
	recorded := o.Recording.Log.Recorded()
	o.Recording.Review(webhook.Review{Path: "/validate", Request: trace.NewBody(body, "application/json", ""), Err: "no manager"})
	<-recorded
	from, err := openSource(project)
	if err != nil {
		t.Fatal(err)
	}
	if reviews.log != o.Recording.Log {
		t.Error("replays are recorded elsewhere")
	}
	question, _ := inspect.Named("admissions")
	for {
		answer, err := from.Ask(t.Context(), question, inspect.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if calls := *answer.(*[]inspect.Admission); len(calls) > 0 { // entries are gathered before they are shown
			if c := calls[0]; c.Path != "/validate" || c.Error != "no manager" || len(c.Objects) != 1 || c.Objects[0].Name != "s" {
				t.Errorf("the call is %+v", c)
			}
			code, _, stderr := run(t, "inspect", "replay", project, fmt.Sprint(calls[0].Seq))
			if code != exitError || !strings.Contains(stderr, "koboshi dev is still starting") {
				t.Errorf("a replay before the start: exit code %d, %s", code, stderr)
			}
			return
		}
	}
}
