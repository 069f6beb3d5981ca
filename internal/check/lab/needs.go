package lab

import (
	"net/http"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// makesWorkloads reports whether, in the run, the controller made an object on which upstream's
// controllers act.
func makesWorkloads(out *evidence.Run) bool {
	for _, e := range out.Entries {
		if e.Call != nil && e.Call.Code == http.StatusCreated && e.Call.Target.Subresource == "" &&
			subject.IsWorkload(e.Call.Target.Group, e.Call.Target.Resource) {
			return true
		}
	}
	return false
}
