package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	operatorDir = "operators/storagebucket"
	bucketName  = "photos"
)

func (d *demo) startPlane(ctx context.Context) error {
	say("etcd, the API server, the controllers, the scheduler and two simulated nodes:")
	show("koboshi up --nodes 2 --data-dir " + filepath.Join(stateDir, "plane"))
	ready := d.path("plane-ready")
	args := []string{"up", "--nodes=2", "--die-with-parent", "--data-dir=" + d.path("plane"), "--ready-file=" + ready}
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
	say("A real nginx Deployment, asking for three replicas:")
	if err := d.kubectl(ctx, "apply", "-f", "demo/nginx-deployment.yaml"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "rollout", "status", "deployment/nginx"); err != nil {
		return err
	}
	say("The Deployment made a ReplicaSet, the ReplicaSet made Pods, the scheduler\ngave each Pod a node, and each now runs:")
	if err := d.kubectl(ctx, "get", "deployments,replicasets"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "get", "pods", "-o", "custom-columns=NAME:.metadata.name,PHASE:.status.phase,NODE:.spec.nodeName"); err != nil {
		return err
	}
	if err := d.expectRunning(ctx, 3); err != nil {
		return err
	}
	say("Who did what, as the controllers tell it:")
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
	say("One Pod is knocked over, and another takes its place:")
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

func (d *demo) installOperator(ctx context.Context) error {
	say("A real S3 server on loopback, with a bucket in it. It knows one user:")
	d.rootKey = "demo-" + rand.Text()
	if err := d.startStore(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	say("The kind of resource, and its operator as a separate process:")
	if err := d.kubectl(ctx, "apply", "-f", operatorDir+"/config/crd/bases"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "wait", "--for=condition=Established", "crd/storagebuckets.storage.koboshi.dev"); err != nil {
		return err
	}
	show("manager --leader-elect=false")
	_, err := d.start("manager", []string{"KUBECONFIG=" + d.path("plane", "kubeconfig")}, nil,
		filepath.Join(operatorDir, "bin", "manager"), "--leader-elect=false", "--health-probe-bind-address=0")
	return err
}

func (d *demo) watchBucket(ctx context.Context) error {
	if err := d.declareBucket(ctx, bucketName, d.rootKey); err != nil {
		return err
	}
	if err := d.expectHealth(ctx, bucketName, "true"); err != nil {
		return err
	}
	say("The store is stopped:")
	if err := d.stop(d.store); err != nil {
		return err
	}
	if err := d.expectHealth(ctx, bucketName, "false"); err != nil {
		return err
	}
	say("The store is back:")
	if err := d.startStore(ctx, d.storeAddress()); err != nil {
		return err
	}
	if err := d.expectHealth(ctx, bucketName, "true"); err != nil {
		return err
	}
	say("What its owner was told:")
	return d.kubectl(ctx, "get", "events", "--field-selector=involvedObject.kind=StorageBucket",
		"--sort-by=.metadata.resourceVersion", "-o", "custom-columns=TYPE:.type,REASON:.reason,BUCKET:.involvedObject.name")
}

func (d *demo) wrongKeys(ctx context.Context) error {
	if err := d.declareBucket(ctx, "films", "not-the-key"); err != nil {
		return err
	}
	return d.expectHealth(ctx, "films", "false")
}

// declareBucket declares a StorageBucket with a key of its own. The key goes
// by a file, so that it shows neither here nor in the process list.
func (d *demo) declareBucket(ctx context.Context, name, key string) error {
	file := filepath.Join(stateDir, name+".env")
	content := "AWS_ACCESS_KEY_ID=" + rootUser + "\nAWS_SECRET_ACCESS_KEY=" + key + "\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "create", "secret", "generic", name+"-key", "--from-env-file="+file); err != nil {
		return err
	}
	manifest := fmt.Sprintf(`apiVersion: storage.koboshi.dev/v1alpha1
kind: StorageBucket
metadata:
  name: %s
spec:
  endpoint: %s
  bucket: %s
  credentialsSecretRef:
    name: %s-key
  probeInterval: 1s
`, name, d.endpoint, bucketName, name)
	fmt.Print(indent(manifest))
	return d.kubectlWithInput(ctx, manifest, "apply", "-f", "-")
}

func (d *demo) expectHealth(ctx context.Context, name, want string) error {
	if err := d.kubectl(ctx, "wait", "--for=condition=Healthy="+want, "stb/"+name, "--timeout=60s"); err != nil {
		return err
	}
	return d.kubectl(ctx, "get", "stb", name)
}
