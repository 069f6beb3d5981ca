package publish

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// loader is a program that copies the image in an archive to the nodes of a local cluster.
type loader struct {
	program string
	// command has the arguments; $FILE and $NAME are replaced.
	command []string
	// name is the name of the cluster if the user gives none; empty means that there are no names.
	name string
}

// loaders has the ways to load an image. Its commands are those of the documentation of each
// program.
var loaders = map[string]loader{
	"kind":       {"kind", []string{"load", "image-archive", "$FILE", "--name", "$NAME"}, "kind"},
	"minikube":   {"minikube", []string{"image", "load", "$FILE", "--profile", "$NAME"}, "minikube"},
	"k3d":        {"k3d", []string{"image", "import", "$FILE", "--cluster", "$NAME"}, "k3s-default"},
	"k3s":        {"k3s", []string{"ctr", "--namespace", "k8s.io", "images", "import", "$FILE"}, ""},
	"containerd": {"ctr", []string{"--namespace", "k8s.io", "images", "import", "$FILE"}, ""},
	"docker":     {"docker", []string{"load", "--input", "$FILE"}, ""},
}

// Loaders returns the values of --load, without the name of a cluster.
func Loaders() []string {
	var all []string
	for name := range loaders {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Target is a local cluster to which an image can be loaded.
type Target struct {
	loader
	cluster string
}

// ParseTarget parses a value of --load, such as kind or kind=NAME, and checks that the program for
// it is installed.
func ParseTarget(text string) (Target, error) {
	kind, cluster, named := strings.Cut(text, "=")
	l, ok := loaders[kind]
	switch {
	case !ok:
		return Target{}, fmt.Errorf("koboshi cannot load an image into %q; use one of %s", kind, strings.Join(Loaders(), ", "))
	case named && l.name == "":
		return Target{}, fmt.Errorf("%s has no clusters with names; use --load %s", kind, kind)
	case named && cluster == "":
		return Target{}, fmt.Errorf("the name of the cluster is missing; use --load %s=NAME", kind)
	case !named:
		cluster = l.name
	}
	if _, err := exec.LookPath(l.program); err != nil {
		return Target{}, fmt.Errorf("--load %s needs the program %s: %w; install it, or push the image to a registry", kind, l.program, err)
	}
	return Target{l, cluster}, nil
}

// Load loads the image in an archive into the nodes of the target.
func (t Target) Load(ctx context.Context, archive string) error {
	args := make([]string, len(t.command))
	for i, arg := range t.command {
		args[i] = strings.NewReplacer("$FILE", archive, "$NAME", t.cluster).Replace(arg)
	}
	cmd := exec.CommandContext(ctx, t.program, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = os.Environ()
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("loading the image: %s %s: %w\n%s", t.program, strings.Join(args, " "), err, strings.TrimSpace(string(said)))
	}
	return nil
}
