package judge

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
)

func TestWhatTheGarbageCollectorDoesWithAWrongOwnerIsSaid(t *testing.T) {
	for child, want := range map[string]string{
		`ConfigMap other/child {"metadata":{"owner:Widget.x default/w"}}`: "will delete it",
		`ClusterRole /child {"metadata":{"owner:Widget.x default/w"}}`:    "ignores this owner, so the object is left over",
	} {
		var runs []*evidence.Run
		for range 3 {
			s := tell(t)
			s.step("a").puts(driver, widget).puts(one, child)
			runs = append(runs, s.end())
		}
		sc := scene()
		sc.Name = "s"
		r, err := NewReference(sc, runs)
		if err != nil {
			t.Fatal(err)
		}
		found := Faultless(r, runs, nil)
		if len(found) != 1 || !strings.HasSuffix(found[0].Sentence, want) {
			t.Errorf("%s: %+v, want the end %q", child, found, want)
		}
	}
}
