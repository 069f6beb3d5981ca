package judge

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

func TestAnObjectThatStaysDeletedOrChangedIsARemarkAndEverythingElseAFinding(t *testing.T) {
	deletion := do(fault.DeleteChild, "create", "ConfigMap/default/child")
	edit := do(fault.EditChild, "create", "ConfigMap/default/child")
	edit.Field = "data"
	begin := func(s *story) *story {
		return s.step("create").puts(driver, widget).puts(one, owned("child", "")).puts(one, `Pod default/p {"metadata":{"owner:ConfigMap default/child"}}`)
	}
	learnt := reference(t, scene(), func(s *story) { begin(s) })
	changed := `ConfigMap default/child {"metadata":{"owner:Widget.x default/w"},"data":{"a":"1x"}}`
	for name, tt := range map[string]struct {
		fault fault.Fault
		story func(s *story)
		want  Verdict
	}{
		"it stays deleted":                                 {deletion, func(s *story) { s.deletes(driver, "ConfigMap default/child") }, NotRestored},
		"its own objects are collected":                    {deletion, func(s *story) { s.deletes(driver, "ConfigMap default/child").deletes(driver, "Pod default/p") }, NotRestored},
		"the status says that it is gone":                  {deletion, func(s *story) { s.deletes(driver, "ConfigMap default/child").puts(one, lost) }, NotRestored},
		"it is restored with other content":                {deletion, func(s *story) { s.deletes(driver, "ConfigMap default/child").puts(one, changed) }, Diverged},
		"another object is deleted as well":                {deletion, func(s *story) { s.deletes(driver, "ConfigMap default/child").deletes(one, "Widget.x default/w") }, Diverged},
		"another object is made instead":                   {deletion, func(s *story) { s.deletes(driver, "ConfigMap default/child").puts(one, owned("child-2", "")) }, Diverged},
		"it is restored, and another object is not":        {deletion, func(s *story) { s.deletes(driver, "Pod default/p") }, Diverged},
		"it stays changed":                                 {edit, func(s *story) { s.puts(driver, changed) }, NotRestored},
		"it is deleted because it was changed":             {edit, func(s *story) { s.puts(driver, changed).deletes(one, "ConfigMap default/child") }, Diverged},
		"another field of it is changed because of this":   {edit, func(s *story) { s.puts(driver, changed).puts(one, owned("child", `"labels":{"a":"b"},`)) }, Diverged},
		"the resource is changed to match, and not undone": {edit, func(s *story) { s.puts(driver, changed).puts(one, `Widget.x default/w {"spec":{"n":3}}`) }, Diverged},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			tt.story(begin(s))
			s.healed(evidence.Never)
			got := Judge(learnt, s.after(tt.fault), nil)
			if len(got) != 1 || got[0].Verdict != tt.want {
				t.Errorf("%s, want %s: %+v", verdicts(got), tt.want, got)
			}
		})
	}
}

func TestMetadataThatStaysChangedIsARemarkWhateverElseFollows(t *testing.T) {
	labelled := func(value string) string { return owned("child", `"labels":{"app":"`+value+`"},`) }
	begin := func(s *story) *story { return s.step("create").puts(driver, widget).puts(one, labelled("w")) }
	learnt := reference(t, scene(), func(s *story) { begin(s) })
	labels, owners := do(fault.EditChild, "create", "ConfigMap/default/child"), do(fault.EditChild, "create", "ConfigMap/default/child")
	labels.Field, owners.Field = fault.Labels, fault.Owners
	orphan := `ConfigMap default/child {"metadata":{"labels":{"app":"w"}}}`
	for name, tt := range map[string]struct {
		fault fault.Fault
		stage evidence.Stage
		story func(s *story)
		want  string
	}{
		"a label stays":             {labels, evidence.Never, func(s *story) { s.puts(driver, labelled("wx")) }, "NOT RESTORED"},
		"the owner stays away":      {owners, evidence.Never, func(s *story) { s.puts(driver, orphan) }, "NOT RESTORED"},
		"another object is created": {labels, evidence.Never, func(s *story) { s.puts(driver, labelled("wx")).puts(one, owned("child-2", "")) }, "NOT RESTORED"},
		"the label is restored only after a restart": {labels, evidence.Restart, func(s *story) {
			s.puts(driver, labelled("wx")).help().puts(two, labelled("w"))
		}, "NOT RESTORED"},
		"the object is deleted for good": {owners, evidence.Never, func(s *story) {
			s.puts(driver, orphan).deletes(one, "ConfigMap default/child")
		}, "DIVERGED"},
		"the label is restored, and another object is not": {labels, evidence.Never, func(s *story) {
			s.puts(driver, labelled("wx")).puts(one, labelled("w")).deletes(one, "Widget.x default/w")
		}, "DIVERGED"},
		"another object stands in for a while": {labels, evidence.AtOnce, func(s *story) {
			s.puts(driver, labelled("wx")).puts(one, owned("child-2", "")).puts(one, labelled("w")).deletes(one, "ConfigMap default/child-2")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			tt.story(begin(s))
			s.healed(tt.stage)
			if got := Judge(learnt, s.after(tt.fault), nil); verdicts(got) != tt.want {
				t.Errorf("%s, want %s: %+v", verdicts(got), tt.want, got)
			}
		})
	}
}

const lost = `Widget.x default/w {"spec":{"n":1},"status":{"ready":false}}`

func TestAnObjectThatIsRestoredAfterARestartIsAFinding(t *testing.T) {
	learnt := reference(t, scene(), func(s *story) { right(s) })
	s := tell(t)
	right(s).deletes(driver, "ConfigMap default/child").help().puts(two, owned("child", "")).healed(evidence.Restart)
	if got := Judge(learnt, s.after(do(fault.DeleteChild, "create", "ConfigMap/default/child")), nil); verdicts(got) != "DIVERGED UNTIL RESTART" {
		t.Errorf("%s: %+v", verdicts(got), got)
	}
}

func TestAStoryWithoutSuchAFaultIsNoRemark(t *testing.T) {
	learnt := reference(t, scene(), func(s *story) { right(s) })
	s := tell(t)
	right(s).deletes(one, "ConfigMap default/child").healed(evidence.Never)
	if got := Judge(learnt, s.after(do(fault.Restart, "create", "")), nil); verdicts(got) != "DIVERGED" {
		t.Errorf("%s: %+v", verdicts(got), got)
	}
}
