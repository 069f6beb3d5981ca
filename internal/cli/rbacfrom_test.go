package cli

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/report"
)

func TestPermissionsAreKeptWhileShardsAreMissing(t *testing.T) {
	if why := incomplete(&report.Report{}); why != "" {
		t.Errorf("a complete report is incomplete, because %s", why)
	}
	for name, r := range map[string]*report.Report{
		"a shard is missing": {MissingShards: 1},
		"only one shard":     {Shard: "1/2", WholePlan: 2, LeftToShards: 1},
	} {
		if why := incomplete(r); !strings.Contains(why, "planned faults") {
			t.Errorf("%s: %q", name, why)
		}
	}
}
