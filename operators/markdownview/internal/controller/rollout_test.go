package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The table contains every state between two versions, and the next step from each state.
// Unless a row sets other values, two viewers are wanted and the desired template is "new".
func TestEveryStateOfARolloutHasOneNextStep(t *testing.T) {
	all := func(pods, ready, available int32) viewers { return viewers{pods, ready, available} }
	full, starting, unreleased := all(2, 2, 2), all(2, 0, 0), all(2, 2, 0)
	type seen = map[template]viewers
	for _, tc := range []struct {
		name string
		rollout
		want step
	}{
		{"no child exists", rollout{desired: "new"}, step{deploy: "new", sel: "new"}},
		{"no child exists and no template can be made", rollout{}, step{}},
		{"only the Deployment was created", rollout{desired: "new", deployed: "new"}, step{deploy: "new", sel: "new"}},
		{"the first viewers start", rollout{desired: "new", deployed: "new", selected: "new", viewers: seen{"new": starting}},
			step{deploy: "new", sel: "new", prune: true}},
		{"steady", rollout{desired: "new", deployed: "new", selected: "new", viewers: seen{"new": full}},
			step{deploy: "new", sel: "new", prune: true}},

		{"an edit", rollout{desired: "new", deployed: "old", selected: "old", viewers: seen{"old": full}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"the new viewers start", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": starting}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"one of the new viewers is Ready", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": all(2, 1, 0)}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"all new viewers are Ready", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", hold: true, sel: "new"}},
		{"the Service was switched", rollout{desired: "new", deployed: "new", held: true, selected: "new", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", sel: "new"}},
		{"the old viewers leave", rollout{desired: "new", deployed: "new", selected: "new", viewers: seen{"old": all(1, 1, 1), "new": full}},
			step{deploy: "new", sel: "new"}},
		{"the old viewers have left", rollout{desired: "new", deployed: "new", selected: "new", viewers: seen{"old": {}, "new": full}},
			step{deploy: "new", sel: "new", prune: true}},

		{"an edit before the first viewer was ever Ready", rollout{desired: "new", deployed: "old", selected: "old", viewers: seen{"old": starting}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"an edit before the first viewer was ever Ready, which has left", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": {}, "new": starting}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"an edit before the first viewer was ever Ready, and one of the new viewers is Ready", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": {}, "new": all(2, 1, 0)}},
			step{deploy: "new", hold: true, sel: "new"}},
		{"an edit while the new viewers start", rollout{desired: "newer", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": starting}},
			step{deploy: "newer", hold: true, sel: "old"}},
		{"an edit while the new viewers are Ready and not selected", rollout{desired: "newer", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "newer", hold: true, sel: "old"}},
		{"an edit after the switch: the Deployment would treat held viewers as broken", rollout{desired: "newer", deployed: "new", held: true, selected: "new", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", sel: "new"}},
		{"an edit after the release, which the Deployment has not noticed yet", rollout{desired: "newer", deployed: "new", selected: "new", viewers: seen{"old": full, "new": all(2, 2, 1)}},
			step{deploy: "new", sel: "new"}},
		{"an edit while the old viewers leave", rollout{desired: "newer", deployed: "new", selected: "new", viewers: seen{"old": all(1, 1, 1), "new": full}},
			step{deploy: "new", sel: "new"}},
		{"an edit while the old viewers stay, because a new viewer crashes", rollout{desired: "newer", deployed: "new", selected: "new", viewers: seen{"old": all(1, 1, 1), "new": all(2, 1, 1)}},
			step{deploy: "newer", hold: true, sel: "new"}},
		{"back to the old content while the new viewers start", rollout{desired: "old", deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": starting}},
			step{deploy: "old", sel: "old"}},
		{"back to the old content after the switch", rollout{desired: "old", deployed: "new", held: true, selected: "new", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", sel: "new"}},
		{"back to the old content while its viewers leave", rollout{desired: "old", deployed: "new", selected: "new", viewers: seen{"old": full, "new": full}},
			step{deploy: "new", sel: "new"}},

		{"scaled up while all new viewers were Ready", rollout{desired: "new", wanted: 3, deployed: "new", held: true, selected: "old", viewers: seen{"old": all(3, 3, 3), "new": all(3, 2, 0)}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"the old viewers crash while a new viewer is Ready", rollout{desired: "new", deployed: "new", held: true, selected: "old", viewers: seen{"old": starting, "new": all(2, 1, 0)}},
			step{deploy: "new", hold: true, sel: "new"}},
		{"an edit while one of the old viewers crashes", rollout{desired: "new", deployed: "old", selected: "old", viewers: seen{"old": all(2, 1, 1)}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"suspended", rollout{desired: "new", wanted: -1, deployed: "new", selected: "new", viewers: seen{"new": {}}},
			step{deploy: "new", sel: "new", prune: true}},
		{"edited while suspended", rollout{desired: "new", wanted: -1, deployed: "old", selected: "old", viewers: seen{"old": full}},
			step{deploy: "new", sel: "old"}},
		{"the content is missing", rollout{deployed: "old", selected: "old", viewers: seen{"old": full}},
			step{deploy: "old", sel: "old"}},
		{"the content is missing during a rollout", rollout{deployed: "new", held: true, selected: "old", viewers: seen{"old": full, "new": unreleased}},
			step{deploy: "new", hold: true, sel: "new"}},
		{"a user deleted the Service", rollout{desired: "new", deployed: "new", viewers: seen{"new": full}},
			step{deploy: "new", sel: "new"}},
		{"a user deleted the Service during a rollout", rollout{desired: "new", deployed: "new", held: true, viewers: seen{"old": full, "new": starting}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"an edit after a user deleted the Service", rollout{desired: "new", deployed: "old", viewers: seen{"old": full}},
			step{deploy: "old", sel: "old"}},
		{"a user deleted the Deployment without its viewers", rollout{desired: "new", selected: "old", viewers: seen{"old": full}},
			step{deploy: "new", hold: true, sel: "old"}},
		{"a user changed the selector of the Service", rollout{desired: "new", deployed: "new", selected: "", viewers: seen{"new": full}},
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
