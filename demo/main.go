// Command demo shows Koboshi with the real programs. Without arguments, it checks a small
// controller that has a bug, and then its repaired twin.
//
// With the argument operators, it runs Kubernetes in one process, rolls out a Deployment,
// and keeps the Deployment running. One custom resource monitors, creates and repairs
// buckets in a real S3 server on loopback, and another custom resource serves a
// documentation site. On a terminal everything keeps running at the end, for further
// experiments; in a pipe, or with CI=true, the demo stops everything.
//
// The demo uses only the built programs, and stops at the first step that does not succeed
// in time.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stepTimeout limits each step of the demo.
const stepTimeout = time.Minute

// A chapter is one part of the demo.
type chapter struct {
	title string
	tell  func(*demo, context.Context) error
}

// operatorStory shows a plane and two operators.
var operatorStory = []chapter{
	{"A complete Kubernetes cluster in one process", (*demo).startPlane},
	{"You declare a state, and Kubernetes makes it so", (*demo).declare},
	{"Scaling up and down, and replacing a lost Pod", (*demo).scaleAndReplace},
	{"A custom resource: StorageBucket", (*demo).installOperator},
	{"Observe: a bucket is monitored, but not changed", (*demo).observeBucket},
	{"Manage: a bucket is created and kept as declared", (*demo).manageBucket},
	{"The bucket is changed outside Kubernetes, and the store sends a notification", (*demo).externalEvent},
	{"The store goes down, and comes back", (*demo).storeOutage},
	{"Wrong keys are distinguished from a missing store", (*demo).wrongKeys},
	{"A site from one resource, served by Pods that are processes", (*demo).publishHandbook},
	{"The site is edited while it is read", (*demo).editHandbook},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		return runCheck(ctx)
	case len(args) == 1 && args[0] == "operators":
		return runOperators(ctx)
	}
	return fmt.Errorf("unknown arguments %q; use operators, or none", args)
}

func runCheck(ctx context.Context) error {
	d, err := newDemo(checkDir)
	if err != nil {
		return err
	}
	if err := d.tell(ctx, checkStory); err != nil {
		return err
	}
	d.tellAfterCheck()
	return nil
}

func runOperators(ctx context.Context) (err error) {
	d, err := newDemo(stateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.stopAll()) }()
	if err := d.tell(ctx, operatorStory); err != nil {
		return err
	}
	d.tellHowToGoOn()
	if interactive() {
		<-ctx.Done()
	}
	return nil
}

// tell runs the chapters of a story, and stops at the first one that fails.
func (d *demo) tell(ctx context.Context, story []chapter) error {
	for i, c := range story {
		fmt.Printf("\n%s\n", bold(fmt.Sprintf("%d. %s", i+1, c.title)))
		if err := c.tell(d, ctx); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			return errors.Join(fmt.Errorf("chapter %d, %s: %w", i+1, c.title, err), d.ended())
		}
	}
	return nil
}

func (d *demo) tellHowToGoOn() {
	fmt.Printf("\n%s\n", bold("Next steps"))
	if interactive() {
		fmt.Println("Everything keeps running until you press Ctrl-C. In another terminal:")
	} else {
		fmt.Println("Everything has been stopped; the cluster's state is kept. To start it again:")
		fmt.Printf("\n  bin/koboshi up --data-dir %s/plane \\\n    --run %s &", stateDir, viewerProgram)
	}
	fmt.Printf(`
  export KUBECONFIG="$PWD/%s/plane/kubeconfig"
  bin/koboshi kubectl get deployments,pods
  bin/koboshi kubectl scale deployment/nginx --replicas=4
  bin/koboshi kubectl get storagebuckets
  bin/koboshi kubectl explain storagebucket.spec.probe
  bin/koboshi kubectl get markdownviews
`, stateDir)
	if interactive() {
		fmt.Printf("\nThe handbook is at %s\n", d.siteURL)
	}
}
