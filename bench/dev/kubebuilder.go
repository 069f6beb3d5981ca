package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// kubebuilder is the loop that kubebuilder's documentation describes. Where there was a choice,
// it was made in favor of kubebuilder:
//
//   - It uses a plane of koboshi up with the same controllers, so that the ratio does not
//     include the difference between two API servers. A person would use kind, whose API server
//     is not faster, and which needs more of the machine.
//   - It runs the commands of the Makefile directly, without make, a shell or kustomize, and
//     without a pause between them.
//   - Like make run, it starts a manager that serves no webhooks and has an administrator's
//     kubeconfig.
//   - The copy of the operator is outside a git repository, so go build does not call git.
type kubebuilder struct {
	*bench
	project        *project
	kubeconfig     string
	plane, manager *program
}

func (k *kubebuilder) name() string { return theirs }

// step is a command of the loop.
type step struct {
	stage string
	argv  []string
}

// steps returns the commands of make manifests generate fmt vet build install. The paths come from
// the operator's own Makefile, because the pattern ./... of kubebuilder's Makefile includes tests
// with dependencies that controller-gen cannot load. Like kubebuilder's Makefile, the commands set
// no flags of go build. make bench-dev sets CGO_ENABLED=0 and -trimpath for both loops, as the
// operator's own Makefile does; with cgo, go build takes longer.
func (k *kubebuilder) steps() []step {
	return []step{
		{"manifests", []string{
			k.controllerGen, "rbac:roleName=manager-role", "crd", "webhook",
			"paths=./api/...", "paths=./internal/controller", "paths=./internal/refs", "paths=./internal/notify",
			"output:crd:artifacts:config=config/crd/bases",
		}},
		{"generate", []string{k.controllerGen, "object", "paths=./api/..."}},
		{"fmt", []string{"go", "fmt", "./..."}},
		{"vet", []string{"go", "vet", "./..."}},
		{stageBuild, []string{"go", "build", "-o", "bin/manager", "./cmd"}},
		{"apply", []string{k.kubectl, "apply", "--server-side", "-k", "config/crd"}},
	}
}

func (k *kubebuilder) start(ctx context.Context) (err error) {
	if k.project, err = copyOperator(k.root, filepath.Join(k.work, theirs), theirs+" "+k.id); err != nil {
		return err
	}
	if err := k.startPlane(ctx); err != nil {
		return err
	}
	if _, err := k.bring(ctx); err != nil {
		return err
	}
	if err := k.execute(ctx, k.kubectl, "wait", "--for=condition=Established", "--timeout=1m", "crd", "--all"); err != nil {
		return err
	}
	if err := k.execute(ctx, k.kubectl, "apply", "-k", "config/samples"); err != nil {
		return err
	}
	_, err = k.restart(ctx)
	return err
}

// startPlane starts a plane, and waits until it is ready.
func (k *kubebuilder) startPlane(ctx context.Context) (err error) {
	k.kubeconfig = filepath.Join(k.work, "kubeconfig")
	ready := filepath.Join(k.work, "ready")
	cmd := exec.Command(k.koboshi, "up", "--profile", profile, "--ephemeral", "--die-with-parent",
		"--kubeconfig", k.kubeconfig, "--ready-file", ready)
	cmd.Dir, cmd.Env = k.work, k.env
	if k.plane, err = launch("koboshi up", cmd); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(ready); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-k.plane.exited:
			return k.plane.failed(fmt.Errorf("koboshi up ended (%s)", k.plane.cmd.ProcessState))
		case <-ctx.Done():
			return k.plane.failed(fmt.Errorf("koboshi up is not ready: %w", context.Cause(ctx)))
		}
	}
}

func (k *kubebuilder) stop() {
	k.manager.stop()
	k.plane.stop()
}

func (k *kubebuilder) follow(ctx context.Context, e edit) (t turn, err error) {
	saved := time.Now()
	if err := k.project.save(e); err != nil {
		return t, err
	}
	if t.Stages, err = k.bring(ctx); err != nil {
		return t, err
	}
	restarting := time.Now()
	at, err := k.restart(ctx)
	t.Stages = append(t.Stages, stage{stageRestart, at.Sub(restarting).Seconds()})
	t.Seconds = at.Sub(saved).Seconds()
	return t, err
}

// bring runs the commands, and returns how long each took.
func (k *kubebuilder) bring(ctx context.Context) (stages []stage, err error) {
	for _, s := range k.steps() {
		began := time.Now()
		if err := k.execute(ctx, s.argv...); err != nil {
			return nil, err
		}
		stages = append(stages, stage{s.stage, time.Since(began).Seconds()})
	}
	return stages, nil
}

// restart ends the manager, starts it again, and returns the time of its first reconcile.
func (k *kubebuilder) restart(ctx context.Context) (at time.Time, err error) {
	k.manager.stop()
	cmd := exec.Command(filepath.Join(k.project.dir, "bin", "manager"))
	cmd.Dir, cmd.Env = k.project.dir, k.environment()
	if k.manager, err = launch("the manager", cmd); err != nil {
		return at, err
	}
	marker := k.project.marker()
	seen, _, err := k.manager.await(ctx, k.manager.err, 0, strconv.Quote(marker), func(text string) bool {
		return strings.Contains(text, marker)
	})
	return seen.at, err
}

func (k *kubebuilder) execute(ctx context.Context, argv ...string) error {
	return execute(ctx, k.project.dir, k.environment(), argv...)
}

func (k *kubebuilder) environment() []string {
	return append(k.env[:len(k.env):len(k.env)], "KUBECONFIG="+k.kubeconfig)
}
