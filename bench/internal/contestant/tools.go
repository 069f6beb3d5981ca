package contestant

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ControllerGen builds controller-gen if necessary, in the version that the StorageBucket
// operator uses, and returns its path. root is the folder of the root module.
func ControllerGen(ctx context.Context, root string) (string, error) {
	return firstLine(ctx, root, "go", "tool", "-modfile=operators/storagebucket/tools/go.mod", "-n", "controller-gen")
}

// GoEnv returns a variable of the go command.
func GoEnv(ctx context.Context, root, name string) (string, error) {
	return firstLine(ctx, root, "go", "env", name)
}

// firstLine returns the first line that a command prints.
func firstLine(ctx context.Context, dir string, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w", cmd, err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, nil
}
