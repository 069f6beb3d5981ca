package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func (d *demo) startPlane(ctx context.Context) error {
	say("etcd, the API server, the controllers, the scheduler, two simulated nodes\nand a real one for Pods whose image is mapped to a program on this machine:")
	show("koboshi up --nodes 2 --data-dir " + filepath.Join(stateDir, "plane") + " \\\n      --run " + viewerProgram)
	ready := d.path("plane-ready")
	args := []string{"up", "--nodes=2", "--die-with-parent", "--data-dir=" + d.path("plane"), "--ready-file=" + ready, "--run=" + viewerProgram}
	p, err := d.start("koboshi", nil, os.Stdout, d.binary, args...)
	if err != nil {
		return err
	}
	if err := d.await(ctx, p, ready); err != nil {
		return err
	}
	return d.kubectl(ctx, "get", "nodes")
}

func (d *demo) declare(ctx context.Context) error {
	say("An ordinary nginx Deployment with three replicas:")
	if err := d.kubectl(ctx, "apply", "-f", "demo/nginx-deployment.yaml"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "rollout", "status", "deployment/nginx"); err != nil {
		return err
	}
	say("The Deployment created a ReplicaSet, the ReplicaSet created Pods, and the\nscheduler assigned each Pod to a node. All Pods are running now:")
	if err := d.kubectl(ctx, "get", "deployments,replicasets"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "get", "pods", "-o", "custom-columns=NAME:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName"); err != nil {
		return err
	}
	if err := d.expectRunning(ctx, 3); err != nil {
		return err
	}
	say("The Events from the controllers:")
	return d.kubectl(ctx, "get", "events", "--sort-by=.metadata.resourceVersion",
		"-o", "custom-columns=WHO:.reportingComponent,REASON:.reason,OBJECT:.involvedObject.kind")
}

func (d *demo) scaleAndReplace(ctx context.Context) error {
	for _, step := range []struct {
		what     string
		replicas int
	}{{"Scaled up to five:", 5}, {"Scaled down to two:", 2}} {
		say(step.what)
		if err := d.kubectl(ctx, "scale", "deployment/nginx", fmt.Sprintf("--replicas=%d", step.replicas)); err != nil {
			return err
		}
		if err := d.kubectl(ctx, "rollout", "status", "deployment/nginx"); err != nil {
			return err
		}
		if err := d.expectRunning(ctx, step.replicas); err != nil {
			return err
		}
	}
	if err := d.kubectl(ctx, "get", "pods"); err != nil {
		return err
	}
	before, err := d.pods(ctx)
	if err != nil {
		return err
	}
	say("One Pod is killed, and another takes its place:")
	if err := d.kubectl(ctx, "delete", "pod", before[0]); err != nil {
		return err
	}
	if err := d.expectRunning(ctx, 2); err != nil {
		return err
	}
	after, err := d.pods(ctx)
	if err != nil {
		return err
	}
	if strings.Join(before, " ") == strings.Join(after, " ") {
		return fmt.Errorf("pod %s was not replaced", before[0])
	}
	return d.kubectl(ctx, "get", "pods")
}
