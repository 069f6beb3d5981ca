package kubelet

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri"
	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/container"
)

func (c Config) newRuntime() (*cri.Runtime, error) {
	// The claim is never closed: it lasts as long as the process.
	subnet, _, err := cri.ClaimSubnet()
	if err != nil {
		return nil, err
	}
	return cri.New(cri.Config{
		Programs:  c.Programs,
		Dir:       filepath.Join(c.Root, "cri"),
		HostPaths: append(slices.Clone(c.HostPaths), c.Root),
		HidePaths: c.HidePaths,
		Subnet:    subnet,
		Init:      []string{"/proc/self/exe", container.Verb},
		Log:       clog.Slog(os.Stderr).With(slog.String("component", "cri")),
	})
}
