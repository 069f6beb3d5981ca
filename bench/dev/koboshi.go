package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// profile selects the controllers of both planes. koboshi dev itself would choose this profile for
// the operator, because the manager writes no workloads.
const profile = "gc"

// koboshi runs the edit loop with koboshi dev.
type koboshi struct {
	*bench
	project *project
	dev     *program
}

func (k *koboshi) name() string { return ours }

func (k *koboshi) start(ctx context.Context) (err error) {
	if k.project, err = copyOperator(k.root, filepath.Join(k.work, ours), ours+" "+k.id); err != nil {
		return err
	}
	cmd := exec.Command(k.koboshi, "dev", "--profile", profile, "--dir", k.project.dir)
	cmd.Dir, cmd.Env = k.work, k.env
	if k.dev, err = launch("koboshi dev", cmd); err != nil {
		return err
	}
	_, _, err = k.reconciled(ctx, 0, 0)
	return err
}

func (k *koboshi) stop() { k.dev.stop() }

func (k *koboshi) follow(ctx context.Context, e edit) (turn, error) {
	out, report := k.dev.out.len(), k.dev.err.len()
	saved := time.Now()
	if err := k.project.save(e); err != nil {
		return turn{}, err
	}
	at, stages, err := k.reconciled(ctx, out, report)
	return turn{Seconds: at.Sub(saved).Seconds(), Stages: stages}, err
}

// reconciled waits for the first reconcile by the current code and for the end of the koboshi dev
// round. It returns the time of that reconcile and the stages of that round. The arguments are
// positions in the manager's output and in the output of koboshi dev.
func (k *koboshi) reconciled(ctx context.Context, out, report int) (time.Time, []stage, error) {
	marker := k.project.marker()
	seen, _, err := k.dev.await(ctx, k.dev.out, out, strconv.Quote(marker), func(text string) bool {
		return strings.Contains(text, marker)
	})
	if err != nil {
		return time.Time{}, nil, err
	}
	var stages []stage
	for {
		var r devRound
		_, report, err = k.dev.await(ctx, k.dev.err, report, "the line of a round", func(text string) (ok bool) {
			r, ok = parseRound(text)
			return ok
		})
		if err != nil {
			return time.Time{}, nil, err
		}
		stages = append(stages, r.stages...)
		switch {
		case r.failed:
			return time.Time{}, nil, k.dev.failed(fmt.Errorf("a round of koboshi dev failed"))
		case r.restarted():
			return seen.at, stages, nil
		}
		report++ // the files have changed again, and another round follows
	}
}

// devRound holds the stages in the line that koboshi dev prints about a round.
type devRound struct {
	stages []stage
	failed bool
}

func (r devRound) restarted() bool { return turn{Stages: r.stages}.of(stageRestart) > 0 }

var (
	roundLine   = regexp.MustCompile(`^koboshi: .+?: ((?:[a-z]+ \d+\.\d+ s(?:, )?)+)(.*)$`)
	timingWords = regexp.MustCompile(`([a-z]+) (\d+\.\d+) s`)
)

// parseRound parses a line of koboshi dev, such as
//
//	koboshi: main.go: build 1.23 s, restart 0.30 s; 1.53 s in all
func parseRound(text string) (r devRound, ok bool) {
	parts := roundLine.FindStringSubmatch(text)
	if parts == nil {
		return r, false
	}
	for _, timing := range timingWords.FindAllStringSubmatch(parts[1], -1) {
		seconds, err := strconv.ParseFloat(timing[2], 64)
		if err != nil {
			return r, false
		}
		r.stages = append(r.stages, stage{timing[1], seconds})
	}
	r.failed = strings.HasSuffix(parts[2], "and failed")
	return r, true
}
