package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The table has every state between two versions and its next step. Unless a row sets other
// values, two viewers are wanted and "new" is desired.
func TestEveryStateOfARolloutHasOneNextStep(t *testing.T) {
	all := func(pods, ready, available int32) viewers { return viewers{pods, ready, available} }
	full, starting, unreleased := all(2, 2, 2), all(2, 0, 0), all(2, 2, 0)
	type seen = map[template]viewers
	for _, tc := range []struct {
		name string
		rollout
		want step
	}{
		{"nothing is there", rollout{desired: "new"}, step{deploy: "new", sel: "new"}},
		{"nothing is there and nothing can be made", rollout{}, step{}},
		{"only the Deployment was made", rollout{desired: "new", deployed: "new"}, step{deploy: "new", sel: "new"}},
		{"the first viewers start", rollout{desired: "new", deployed: "new", selected: "new", viewers: seen{"new": starting}},
			step{deploy: "new", sel: "new", prune: true}},
		{"steady", rollout{desired: "new", deployed: "new", selected: "new", viewers: seen{"new": full}},
			step{deploy: "new", sel: "new", prune: true}},

		{"an edit", rollout{desired: "new", deployed: "old", selected: "old", viewers: seen{"old": full}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"the new start", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": starting}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"one of the new is Ready", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": all(2, 1, 0)}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"all of the new are Ready", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", hold: true, sel: "new"}},
		{"the Service was switched", rollout{desired: "new", deployed: "new", held: true, selected: "new", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", sel: "new"}},
		{"the old leave", rollout{desired: "new", deployed: "new", selected: "new", viewers: seen{"old": all(1, 1, 1), "new": full}},
			step{deploy: "new", sel: "new"}},
		{"the old have left", rollout{desired: "new", deployed: "new", selected: "new", viewers: seen{"old": {}, "new": full}},
			step{deploy: "new", sel: "new", prune: true}},

		{"an edit before the first was ever Ready", rollout{desired: "new", deployed: "old", selected: "old", viewers: seen{"old": starting}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"and the first has left", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": {}, "new": starting}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"and one of the new is Ready", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": {}, "new": all(2, 1, 0)}},
			step{deploy: "new", hold: true, sel: "new"}},
		{"an edit while the new start", rollout{desired: "newer", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": starting}},
			step{deploy: "newer", hold: true, sel: "old"}},
		{"an edit while the new are Ready and not served", rollout{desired: "newer", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "newer", hold: true, sel: "old"}},
		{"an edit after the switch: what is held would be taken for broken", rollout{desired: "newer", deployed: "new", held: true, selected: "new", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", sel: "new"}},
		{"an edit after the release, not noticed yet", rollout{desired: "newer", deployed: "new", selected: "new", viewers: seen{"old": full, "new": all(2, 2, 1)}},
			step{deploy: "new", sel: "new"}},
		{"an edit while the old leave", rollout{desired: "newer", deployed: "new", selected: "new", viewers: seen{"old": all(1, 1, 1), "new": full}},
			step{deploy: "new", sel: "new"}},
		{"an edit while the old stay, because one of the new crashes", rollout{desired: "newer", deployed: "new", selected: "new", viewers: seen{"old": all(1, 1, 1), "new": all(2, 1, 1)}},
			step{deploy: "newer", hold: true, sel: "new"}},
		{"back to the old while the new start", rollout{desired: "old", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": starting}},
			step{deploy: "old", sel: "old"}},
		{"back to the old after the switch", rollout{desired: "old", deployed: "new", held: true, selected: "new", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", sel: "new"}},
		{"back to the old while it leaves", rollout{desired: "old", deployed: "new", selected: "new", viewers: seen{"old": full, "new": full}},
			step{deploy: "new", sel: "new"}},

		{"scaled up while all of the new were Ready", rollout{desired: "new", wanted: 3, deployed: "new", held: true, selected: "old", viewers: seen{"old": all(3, 3, 3), "new": all(3, 2, 0)}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"the old crash while one of the new is Ready", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": starting, "new": all(2, 1, 0)}},
			step{deploy: "new", hold: true, sel: "new"}},
		{"one of the old crashes, and an edit", rollout{desired: "new", deployed: "old", selected: "old", viewers: seen{"old": all(2, 1, 1)}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"suspended", rollout{desired: "new", wanted: -1, deployed: "new", selected: "new", viewers: seen{"new": {}}},
			step{deploy: "new", sel: "new", prune: true}},
		{"edited while suspended", rollout{desired: "new", wanted: -1, deployed: "old", selected: "old", viewers: seen{"old": full}},
			step{deploy: "new", sel: "old"}},
		{"the content is missing", rollout{deployed: "old", selected: "old", viewers: seen{"old": full}},
			step{deploy: "old", sel: "old"}},
		{"the content is missing in a rollout", rollout{deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", hold: true, sel: "new"}},
		{"somebody deleted the Service", rollout{desired: "new", deployed: "new", viewers: seen{"new": full}},
			step{deploy: "new", sel: "new"}},
		{"somebody deleted the Service in a rollout", rollout{desired: "new", deployed: "new", held: true, viewers: seen{"old": full, "new": starting}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"somebody deleted the Service, and an edit", rollout{desired: "new", deployed: "old", viewers: seen{"old": full}},
			step{deploy: "old", sel: "old"}},
		{"somebody deleted the Deployment and left its viewers", rollout{desired: "new", selected: "old", viewers: seen{"old": full}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"somebody changed the Service's selector", rollout{desired: "new", deployed: "new", selected: "", viewers: seen{"new": full}},
			step{deploy: "new", sel: "new"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			switch tc.wanted {
			case 0:
				tc.wanted = 2
			case -1:
				tc.wanted = 0
			}
			if diff := cmp.Diff(tc.want, tc.next(), cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
