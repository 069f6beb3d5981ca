package opinions

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// wrong explains, for each verdict that a project can accept, when accepting a finding would be
// wrong.
var wrong = map[judge.Verdict]string{
	judge.Diverged:             "It is wrong if anything depends on the value: after the fault it stays different until somebody repairs it.",
	judge.DivergedUntilRestart: "It is wrong if anything depends on the value while the controller runs: it stays different until the next restart.",
	judge.DestructiveBlip:      "It is wrong if anything uses the object: for a moment, it is gone, out of service, or there one time too many.",
	judge.Leak:                 "It is wrong unless the object is meant to outlive its resource: nothing else will ever delete it.",
	judge.SecretLeaked:         "It is wrong unless everybody who can read the object may know the value.",
	judge.Collision:            "It is wrong unless the object belongs to only one of the resources: the other one goes without it.",
	judge.PathDependent:        "It is wrong unless the value is a history: the same declaration leads to different results.",
	judge.UpgradeChurn:         "It is wrong unless the release notes announce it: running workloads are disturbed at the moment of the upgrade.",
	judge.NotAsFresh:           "It is wrong unless both states are supported: nothing else will ever bring upgraded clusters to the new state.",
	judge.DataLost:             "It is wrong unless the release notes say how to save the value before the upgrade.",
	judge.DowngradeBroken:      "It is wrong if anybody may have to go back to the old version.",
}

// never lists the verdicts that no project can accept.
var never = []judge.Verdict{judge.Crashed, judge.SplitBrain, judge.HotLoop, judge.Invariant, judge.StuckTerminating, judge.RBACMissing, judge.RBACUnused}

// ofUpgrade lists the verdicts that a project accepts as expected changes of an upgrade.
var ofUpgrade = []judge.Verdict{judge.UpgradeChurn, judge.NotAsFresh, judge.DataLost, judge.DowngradeBroken}

const wrongMeddling = "It is wrong if somebody may delete or change such an object by mistake: the controller does not notice."

const wrongLists = "It is wrong if a cluster may have thousands of them: each list makes the server send all of them."

const wrongInert = "It is wrong if users expect that a change of the field is applied."

const wrongLossy = "It is wrong unless nobody uses the older version any longer: each client that writes it back removes the value."

// Silence returns the lines that make koboshi check accept a finding, or nil if no setting can
// do that.
func Silence(f judge.Finding) *judge.Silence {
	if f.Verdict == judge.UnboundedLists {
		_, resource, _ := strings.Cut(f.Request, " ")
		return &judge.Silence{Add: section(Opinions{Requests: Requests{Lists: []string{resource}}}), Wrong: wrongLists}
	}
	if len(f.Differences) == 0 || slices.Contains(never, f.Verdict) {
		return nil
	}
	if f.Fault != nil && (f.Fault.Kind == fault.DeleteChild || f.Fault.Kind == fault.EditChild) && f.Verdict != judge.Leak {
		kind, _, _ := strings.Cut(f.Fault.Target, "/")
		return &judge.Silence{Add: section(Opinions{Interference: Interference{Skip: []string{kind}}}), Wrong: wrongMeddling}
	}
	if f.Verdict == judge.InertField {
		kind, _, _ := strings.Cut(f.Differences[0].Object, " ")
		return &judge.Silence{Add: section(Opinions{Inputs: Inputs{Inert: []string{kind + " " + f.Differences[0].Path}}}), Wrong: wrongInert}
	}
	if f.Verdict == judge.ConversionLossy {
		var lines []string
		for _, d := range f.Differences {
			if line := d.Object + " " + everyItem(d.Path); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		return &judge.Silence{Add: section(Opinions{Conversions: Conversions{Lossy: lines}}), Wrong: wrongLossy}
	}
	why, can := wrong[f.Verdict]
	if !can {
		return nil
	}
	lines := ignored(f)
	if len(lines) == 0 {
		return nil
	}
	if slices.Contains(ofUpgrade, f.Verdict) {
		return &judge.Silence{Add: section(Opinions{Upgrade: Upgrade{Expected: lines}}), Wrong: why}
	}
	return &judge.Silence{Add: section(Opinions{Ignore: lines}), Wrong: why}
}

// ignored returns the lines of an ignore list for the differences of a finding. It returns nil if a
// difference is not between two states, because an ignore list does not hide such a difference.
func ignored(f judge.Finding) (lines []string) {
	for _, d := range f.Differences {
		path := d.Path
		switch entry, isData := strings.CutPrefix(path, "data."); {
		case path == judge.LogPath:
			return nil
		case path == "", strings.HasPrefix(path, "("):
			path = "*" // the object exists or not, whatever its content
		case f.Verdict == judge.DestructiveBlip && isData:
			path = "data[" + entry + "]" // a key of a Secret may contain dots
		case path == "metadata.ownerReferences":
			return nil // the garbage collector does not ignore it either
		case d.Got == "" && (path == "metadata.finalizers" || path == "metadata.annotations" || path == "metadata.managedFields"):
			return nil // the mark belongs to another client
		}
		if line := d.Object + " " + path; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// section returns the section of koboshi.yaml that holds the settings.
func section(o Opinions) string {
	data, err := json.Marshal(map[string]Opinions{"check": o})
	if err != nil {
		return ""
	}
	var value map[string]any
	if err := json.Unmarshal(data, &value); err != nil {
		return ""
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(value); err != nil {
		return ""
	}
	return out.String()
}
