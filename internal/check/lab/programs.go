package lab

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/home"
	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/kubelet"
)

// runPrograms makes Pods with certain images run real programs. These programs do not belong to the
// controller, so a kill of the controller does not end them. The programs end with the lab, and
// before each Reset. Like all programs of a check, they do not see the user's credentials.
func (l *Lab) runPrograms(o *controlplane.Options) {
	if len(l.config.Programs) == 0 {
		return
	}
	o.Programs, o.HidePaths = l.config.Programs, home.Credentials()
}

// noPrograms returns an error if the system does not let programs run in Pods. Without programs,
// these Pods would stay pending in each scenario.
func (l *Lab) noPrograms() error {
	if l.plane.NoPrograms() == nil {
		return nil
	}
	return &SetupError{fmt.Errorf("--run: %w", kubelet.ErrForbidden)}
}
