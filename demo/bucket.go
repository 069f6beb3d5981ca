package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	operatorDir = "operators/storagebucket"

	observedBucket = "films"
	managedBucket  = "photos"
)

func (d *demo) installOperator(ctx context.Context) error {
	say("A real S3 server on loopback, with one bucket and one user:")
	d.rootKey = "demo-" + rand.Text()
	if err := d.startStore(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	say("The CRDs, and their operator as a separate process. Loopback must be allowed\nexplicitly, because tenants choose the endpoints, and must not reach the\noperator's own network.")
	if err := d.kubectl(ctx, "apply", "--server-side", "-f", operatorDir+"/config/crd/bases"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all"); err != nil {
		return err
	}
	if err := d.startOperator(ctx); err != nil {
		return err
	}
	say("The store's address, and the key for it:")
	return d.declareStore(ctx, "local", d.rootKey)
}

// startOperator runs the manager, which receives notifications on a separate port, from
// clients that present the token.
func (d *demo) startOperator(ctx context.Context) error {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	d.notifyURL, d.notifyToken = "http://"+address, rand.Text()
	token := d.path("notify-token")
	if err := os.WriteFile(token, []byte(d.notifyToken), 0o600); err != nil {
		return err
	}
	show("manager --allowed-endpoints=127.0.0.1 --notify-bind-address=" + address)
	_, err = d.start("manager", []string{"KUBECONFIG=" + d.path("plane", "kubeconfig")}, nil,
		filepath.Join(operatorDir, "bin", "manager"), "--allowed-endpoints=127.0.0.1",
		"--notify-bind-address="+address, "--notify-token-file="+token)
	return err
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("picking a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// declareStore declares an ObjectStore and a Secret with its key. The key is passed in a
// file, so that it does not appear in the demo's output or in the process list.
func (d *demo) declareStore(ctx context.Context, name, key string) error {
	file := filepath.Join(stateDir, name+".env")
	content := "AWS_ACCESS_KEY_ID=" + rootUser + "\nAWS_SECRET_ACCESS_KEY=" + key + "\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "create", "secret", "generic", name+"-key", "--from-env-file="+file); err != nil {
		return err
	}
	return d.apply(ctx, fmt.Sprintf(`apiVersion: storage.koboshi.dev/v1
kind: ObjectStore
metadata: {name: %s}
spec:
  endpoint: %s
  credentials: {secretRef: {name: %s-key}}
  healthInterval: 1s
`, name, d.endpoint, name))
}

func (d *demo) apply(ctx context.Context, manifest string) error {
	fmt.Print(indent(manifest))
	return d.kubectlWithInput(ctx, manifest, "apply", "-f", "-")
}

func (d *demo) observeBucket(ctx context.Context) error {
	err := d.timed("from the declaration to Ready", func() error {
		return d.declareAndAwait(ctx, observedBucket, `apiVersion: storage.koboshi.dev/v1
kind: StorageBucket
metadata: {name: films}
spec:
  storeRef: {name: local}
  probe: {interval: 1s}
`)
	})
	if err != nil {
		return err
	}
	return d.kubectl(ctx, "get", "objectstores,storagebuckets")
}

func (d *demo) manageBucket(ctx context.Context) error {
	err := d.timed("from the declaration to a bucket that is created, tagged and versioned", func() error {
		return d.declareAndAwait(ctx, managedBucket, `apiVersion: storage.koboshi.dev/v1
kind: StorageBucket
metadata: {name: photos}
spec:
  storeRef: {name: local}
  management: Manage
  deletionPolicy: Delete
  versioning: Enabled
  tags: {team: pictures}
  probe: {interval: 1h}
`)
	})
	if err != nil {
		return err
	}
	if err := d.expectAtStore(ctx, "versioning", managedBucket, "Enabled"); err != nil {
		return err
	}
	return d.kubectl(ctx, "get", "stb", managedBucket)
}

func (d *demo) declareAndAwait(ctx context.Context, name, manifest string) error {
	if err := d.apply(ctx, manifest); err != nil {
		return err
	}
	return d.kubectl(ctx, "wait", "--for=condition=Ready", "stb/"+name, "--timeout=60s")
}

// externalEvent shows that a notification from the store makes the operator act
// immediately, although the operator's next check is an hour away.
func (d *demo) externalEvent(ctx context.Context) error {
	say("Versioning is suspended directly in the store:")
	if err := d.atStore(ctx, "suspend-versioning", managedBucket); err != nil {
		return err
	}
	say("The operator's next check is an hour away, but the store sends a notification\n(here the demo sends it, as S3 would):")
	show(`curl -H "Authorization: Bearer $TOKEN" -d @s3-event.json ` + d.notifyURL + "/v1/stores/default/local/events")
	err := d.timed("from the notification to versioning enabled again", func() error {
		if err := d.notify(ctx); err != nil {
			return err
		}
		return d.expectAtStore(ctx, "versioning", managedBucket, "Enabled")
	})
	if err != nil {
		return err
	}
	say("When the bucket is no longer wanted, only this bucket is deleted:")
	if err := d.kubectl(ctx, "delete", "stb", managedBucket); err != nil {
		return err
	}
	if err := d.expectAtStore(ctx, "exists", managedBucket, "false"); err != nil {
		return err
	}
	return d.expectAtStore(ctx, "exists", observedBucket, "true")
}

// notify sends the event that S3 sends after an object is put.
func (d *demo) notify(ctx context.Context) error {
	body := `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"` + managedBucket + `"},"object":{"key":"a.jpg"}}}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.notifyURL+"/v1/stores/default/local/events", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+d.notifyToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("sending the notification: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	fmt.Print(indent(strings.TrimSpace(string(answer))))
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the notification endpoint responded with %s", resp.Status)
	}
	return nil
}

func (d *demo) storeOutage(ctx context.Context) error {
	say("The store is stopped:")
	if err := d.stop(d.store); err != nil {
		return err
	}
	if err := d.expectHealth(ctx, observedBucket, "unknown"); err != nil {
		return err
	}
	say("The store is back:")
	if err := d.startStore(ctx, d.storeAddress()); err != nil {
		return err
	}
	if err := d.expectHealth(ctx, observedBucket, "true"); err != nil {
		return err
	}
	say("The Events that the owner of the buckets sees:")
	return d.kubectl(ctx, "get", "events", "--field-selector=involvedObject.apiVersion=storage.koboshi.dev/v1",
		"--sort-by=.metadata.resourceVersion", "-o", "custom-columns=TYPE:.type,REASON:.reason,KIND:.involvedObject.kind,NAME:.involvedObject.name")
}

func (d *demo) wrongKeys(ctx context.Context) error {
	if err := d.declareStore(ctx, "wrong", "not-the-key"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, "wait", "--for=condition=Ready=false", "obs/wrong", "--timeout=60s"); err != nil {
		return err
	}
	return d.kubectl(ctx, "get", "obs")
}

func (d *demo) expectHealth(ctx context.Context, name, want string) error {
	if err := d.kubectl(ctx, "wait", "--for=condition=Healthy="+want, "stb/"+name, "--timeout=60s"); err != nil {
		return err
	}
	return d.kubectl(ctx, "get", "stb", name)
}

// timed calls do and prints how long the call took.
func (d *demo) timed(what string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	fmt.Printf("\n  %.2f s %s\n", time.Since(began).Seconds(), what)
	return nil
}

// atStore changes something in the store directly, without the operator.
func (d *demo) atStore(ctx context.Context, verb, bucket string) error {
	show("s3client " + verb + " " + bucket)
	out, err := d.askStore(ctx, verb, bucket)
	fmt.Print(indent(out))
	return err
}

func (d *demo) askStore(ctx context.Context, verb, bucket string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(operatorDir, "bin", "s3client"), "--endpoint", d.endpoint, verb, bucket)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+rootUser, "ROOT_SECRET_KEY="+d.rootKey)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("s3client %s %s: %w: %s", verb, bucket, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// expectAtStore waits until the store itself gives the expected answer.
func (d *demo) expectAtStore(ctx context.Context, verb, bucket, want string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	show("s3client " + verb + " " + bucket)
	for {
		out, err := d.askStore(ctx, verb, bucket)
		if err == nil && out == want {
			fmt.Print(indent(out))
			return nil
		}
		select {
		case <-time.After(pollInterval / 5):
		case <-ctx.Done():
			return fmt.Errorf("the store still reports %q after %v, but should report %q: %w", out, stepTimeout, want, err)
		}
	}
}
