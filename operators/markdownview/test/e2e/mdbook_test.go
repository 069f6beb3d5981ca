package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

func TestMdBookIsRunAsTheTutorialDoes(t *testing.T) {
	files := maps.Clone(guide)
	delete(files, "install/grüße.md")
	files["SUMMARY.md"] = "# Guide\n\n[Welcome](README.md)\n\n- [Install](install/linux.md)\n"
	view := newView(t, viewv1.MarkdownViewSpec{ViewerImage: mdBookImage, Markdowns: files})
	site := publish(t, view)
	home := get(t, site)
	if realMdBook {
		if !bytes.Contains(home.text, []byte("<table>")) {
			t.Errorf("%d: %s", home.status, home.text)
		}
		return
	}
	t.Log("mdbook is not installed: a replacement reports how it was started")
	var got struct {
		Args               []string
		Dir                string
		ReadOnly, Writable bool
		Files              map[string]string
	}
	if err := json.Unmarshal(home.text, &got); err != nil {
		t.Fatalf("%v: %s", err, home.text)
	}
	if diff := cmp.Diff([]string{"serve", "--hostname", "0.0.0.0"}, got.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if got.Dir != "/book" || !got.ReadOnly || !got.Writable {
		t.Errorf("it runs in %s, src is read-only: %v, the rest can be written: %v", got.Dir, got.ReadOnly, got.Writable)
	}
	if diff := cmp.Diff(files, got.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// scale scales a site with kubectl scale. If kubectl is not installed, it does the same
// through the API.
func scale(t *testing.T, view *viewv1.MarkdownView, replicas int32) {
	t.Helper()
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		out, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", world.Kubeconfig, "scale", "-n", view.Namespace,
			"mdv/"+view.Name, fmt.Sprintf("--replicas=%d", replicas)).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl scale: %v: %s", err, out)
		}
		return
	}
	await(t, "the new number of replicas to be written", func(ctx context.Context) error {
		wanted := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		return world.SubResource("scale").Update(ctx, view, client.WithSubResourceBody(wanted))
	})
}
