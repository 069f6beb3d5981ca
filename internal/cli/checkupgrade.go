package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// combineUpgrade returns an error if --upgrade-from is given with a flag that would have no effect.
func (f *checkFlags) combineUpgrade(fs *pflag.FlagSet) error {
	if f.upgrade == "" {
		return nil
	}
	for _, name := range []string{"inputs", "strict", "paths", "driver", "plan", "faults", "shard", "horizon", "resume"} {
		if fs.Changed(name) {
			return fmt.Errorf("--upgrade-from only compares two versions, so --%s has no effect; omit one of them", name)
		}
	}
	if f.project.ReadsStdin() {
		return errors.New("--upgrade-from reads the manifests of two versions, but standard input can be read only once; write the manifests to files")
	}
	return nil
}

// oldVersion is the version from which a check upgrades.
type oldVersion struct {
	from    string
	project *project.Project
}

// upgrade adds the old version to the options, if there is one.
func (v *oldVersion) upgrade(o *check.Options) {
	if v == nil {
		return
	}
	o.Upgrade = &check.Upgrade{From: v.from, Old: v.project.Subject}
	o.Upgrade.Old.Private = o.Subject.Private
	if !o.ProfileChosen {
		return
	}
	profile, reason := v.project.Subject.Profile()
	if slices.Index(profiles, profile) > slices.Index(profiles, o.Profile) {
		o.Profile, o.ProfileReason = profile, "in the old version, "+reason
	}
}

// profiles lists the profiles that may be chosen; each does all that those before it do.
var profiles = []string{subject.ProfileGC, subject.ProfileWorkloads, subject.ProfileFull}

// old prepares the version that --upgrade-from names. Without scenarios of the user, it generates them
// from the samples of the old version, because these are the objects that users have. It returns nil if
// the flag is not given. The caller must call discard.
func (f *checkFlags) old(ctx context.Context, o *check.Options, dir string, stdio Stdio, progress *report.Progress) (v *oldVersion, discard func(), err error) {
	discard = func() {}
	if f.upgrade == "" {
		return nil, discard, nil
	}
	options := f.project
	switch info, statErr := os.Stat(f.upgrade); {
	case statErr == nil && info.IsDir():
		options.Dir = f.upgrade
	case isCommand(f.upgrade):
		options.Command = strings.Fields(f.upgrade)
	default:
		if options.Dir, discard, err = worktree(ctx, f.project.Dir, f.upgrade, filepath.Join(dir, "old")); err != nil {
			return nil, discard, err
		}
	}
	options.Opened = func(p *project.Project) error {
		if len(o.Scenarios) > 0 {
			return nil
		}
		return generate(p, o)
	}
	p, err := project.Prepare(ctx, options, filepath.Join(dir, "manager-old"), stdio.Err, oldProgress{progress, len(options.Command) > 0})
	if err != nil {
		discard()
		return nil, func() {}, fmt.Errorf("the old version, %s: %w", f.upgrade, err)
	}
	return &oldVersion{from: f.upgrade, project: p}, discard, nil
}

// oldVersionLines describes the old version that a replay of an upgrade builds and runs.
func oldVersionLines(from string) []string {
	if from == "" {
		return nil
	}
	return []string{fmt.Sprintf("  %-12s %s\n  %-12s which is a revision or a folder to build, or a command", "old version", printable(from), "")}
}

// oldProgress shows the progress of preparing the old version. It omits notes about a command, because
// the preparation of the new version, with the same manifests, repeats them.
type oldProgress struct {
	*report.Progress
	silent bool
}

// Phase begins a phase.
func (p oldProgress) Phase(name string) { p.Progress.Phase(name + ", old version") }

// Note shows a note.
func (p oldProgress) Note(text string) {
	if !p.silent {
		p.Progress.Note("old version: " + text)
	}
}

// isCommand reports whether a value of --upgrade-from is a command: it has arguments, or names a
// program by a path.
func isCommand(text string) bool {
	words := strings.Fields(text)
	if len(words) == 0 {
		return false
	}
	program, err := exec.LookPath(words[0])
	return err == nil && (len(words) > 1 || strings.ContainsRune(program, filepath.Separator) && strings.ContainsRune(words[0], filepath.Separator))
}

// worktree checks out a revision of the project's repository into a folder, and returns the folder of the
// project in it. remove removes the worktree.
func worktree(ctx context.Context, project, revision, folder string) (dir string, remove func(), err error) {
	none := func() {}
	git := func(ctx context.Context, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", project}, args...)...)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
		}
		return strings.TrimSpace(string(out)), err
	}
	hash, err := git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return "", none, fmt.Errorf("--upgrade-from %s is no folder, and no revision of git in %s; name a tag, a branch or a commit, and fetch it first if the clone is shallow", revision, folderName(project))
	}
	prefix, err := git(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return "", none, fmt.Errorf("--upgrade-from %s: %w", revision, err)
	}
	if _, err := git(ctx, "worktree", "add", "--detach", "--force", folder, hash); err != nil {
		return "", none, fmt.Errorf("--upgrade-from %s: %w; name a folder with the old version instead", revision, err)
	}
	remove = func() { _, _ = git(context.WithoutCancel(ctx), "worktree", "remove", "--force", folder) }
	dir = filepath.Join(folder, filepath.FromSlash(prefix))
	if _, err := os.Stat(dir); err != nil {
		remove()
		return "", none, fmt.Errorf("--upgrade-from %s: the folder %s does not exist in this revision; name one that contains the project", revision, prefix)
	}
	return dir, remove, nil
}
