package v1

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnObjectWithoutStatusIsWrittenWithoutOne(t *testing.T) {
	v := MarkdownView{
		TypeMeta: metav1.TypeMeta{APIVersion: "view.koboshi.dev/v1", Kind: "MarkdownView"},
		Spec:     MarkdownViewSpec{Markdowns: map[string]string{"a.md": "# A"}},
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"kind":"MarkdownView","apiVersion":"view.koboshi.dev/v1","spec":{"markdowns":{"a.md":"# A"}}}`
	if string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
	// Zeros in a status are written, because kubectl get shows them in columns.
	v.Status.ObservedGeneration = 1
	if text, err = json.Marshal(v.Status); err != nil {
		t.Fatal(err)
	}
	if string(text) != `{"observedGeneration":1,"readyReplicas":0,"problemCount":0}` {
		t.Errorf("the status is %s", text)
	}
}
