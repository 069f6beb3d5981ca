package lab

import (
	"fmt"
	"os"

	"github.com/koboshi-dev/koboshi/internal/check/home"
)

// home returns the home directory of one controller instance.
func (l *Lab) home(slot int) string {
	return l.path(fmt.Sprintf("home-%d", slot))
}

// files returns the folder with the files of the volumes of one controller instance.
func (l *Lab) files(slot int) string { return l.path(fmt.Sprintf("files-%d", slot)) }

// commandHome returns the home directory of the scenario's commands. endpointHome returns the home
// directory of the external endpoints, which do not use the cluster.
func (l *Lab) commandHome() string  { return l.path("home-commands") }
func (l *Lab) endpointHome() string { return l.path("home-endpoints") }

// makeHomes creates or empties the home directories of the scenario's programs, and empties
// the writable volumes of the controller. Commands get a kubeconfig with the rights of an
// administrator.
func (l *Lab) makeHomes() error {
	kubeconfig, err := os.ReadFile(l.plane.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the plane's kubeconfig: %w", err)
	}
	if err := l.emptyVolumes(); err != nil {
		return err
	}
	if err := home.Make(l.commandHome(), kubeconfig); err != nil {
		return err
	}
	return home.Make(l.endpointHome(), nil)
}
