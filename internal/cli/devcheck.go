package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/devloop/checking"
	"github.com/koboshi-dev/koboshi/internal/devloop/session"
)

// checkBudget is the time limit of a check, not counting the build.
const checkBudget = 2 * time.Minute

// checkIdle is the time without an edit after which koboshi dev --check starts a check.
const checkIdle = 5 * time.Second

// startChecking starts the background checks of --check. Each check writes its report to the
// folder.
func (f *devFlags) startChecking(ctx context.Context, o *session.Options, folder string, v *devView) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	report := filepath.Join(folder, "check.json")
	v.check = checking.Start(ctx, checking.Options{
		Command: func() (command, env []string, err error) {
			if env, err = o.Env(); err != nil {
				return nil, nil, err
			}
			return append([]string{self}, f.checkArgs(o, report, env)...), append(os.Environ(), env...), nil
		},
		Report: report, Findings: filepath.Join(o.Project.Dir, filepath.FromSlash(defaultFindings)), Dir: o.Project.Dir, Idle: checkIdle, Note: v.Note,
	})
	return nil
}

// checkArgs returns the arguments of koboshi check for the same project. Variables are passed by
// their names, so that no other user of the machine sees their values.
func (f *devFlags) checkArgs(o *session.Options, report string, env []string) []string {
	args := []string{"check", "-o", "json=" + report, "--budget=" + f.check.String()}
	p := o.Project
	var run []string
	for _, program := range o.Programs {
		run = append(run, program.Image+"="+program.Path)
	}
	for _, flag := range []struct {
		name   string
		values []string
	}{
		{"main", []string{p.Main}},
		{"kustomization", []string{p.Kustomization}},
		{"manifests", p.Manifests},
		{"deployment", []string{p.Deployment}},
		{"crds", []string{p.CRDs}},
		{"rbac", []string{p.RBAC}},
		{"webhooks", []string{p.Webhooks}},
		{"with-crds", p.WithCRDs},
		{"given", p.Given},
		{"samples", []string{p.Samples}},
		{"profile", []string{f.profile}},
		{"run", run},
		{"args", p.Args},
		{"env", namesOf(env)},
	} {
		for _, value := range flag.values {
			if value != "" {
				args = append(args, "--"+flag.name+"="+value)
			}
		}
	}
	if p.WebhookPort > 0 {
		args = append(args, fmt.Sprintf("--webhook-port=%d", p.WebhookPort))
	}
	if len(p.Command) > 0 {
		args = append(append(args, "--"), p.Command...)
	}
	return args
}

func namesOf(env []string) (names []string) {
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return names
}
