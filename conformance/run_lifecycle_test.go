package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func restarted(pod *corev1.Pod) error {
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount == 0 {
		return errors.New("not restarted")
	}
	return nil
}

func waitingFor(reason string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason == reason {
				return nil
			}
		}
		return errors.New("does not wait for " + reason)
	}
}

// probed returns a Pod with a server and a probe of the given kind.
func probed(name, kind, probe string, args ...string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: $NS}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: e, emptyDir: {}}]
  containers:
  - name: web
    image: conformance/web:1
    args: [%s]
    ports: [{name: http, containerPort: 8080}]
    volumeMounts: [{name: e, mountPath: /state}]
    %s: {periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 1, %s}
`, name, strings.Join(args, ", "), kind, probe)
}

func TestProgramIsReadyWhenItsProbeSaysSo(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, probed("http", "readinessProbe", "httpGet: {path: /readyz, port: http}", "-unready"))
	p.applyIn(t, ns, probed("tcp", "readinessProbe", "tcpSocket: {port: 8081}"))
	p.applyIn(t, ns, probed("exec", "readinessProbe", `exec: {command: ["test", "-e", "/state/ready"]}`))
	notReady := func(pod *corev1.Pod) error {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil && !c.Ready && !isReady(pod) {
				return nil
			}
		}
		return errors.New("no container is running while the Pod is not Ready")
	}
	var http *corev1.Pod
	for _, name := range []string{"tcp", "exec", "http"} {
		http = p.waitForPod(t, ns, name, "running, not Ready", notReady)
	}
	never(t, "no pod is Ready before its probe succeeds", 3*time.Second, func(ctx context.Context) error {
		pods, err := p.pods(ctx, ns)
		for i := range pods {
			if isReady(&pods[i]) {
				return fmt.Errorf("pod %s is Ready", pods[i].Name)
			}
		}
		return err
	})
	p.waitForAnswer(t, ns, "http", "one from http\n")
	post(t, web(http)+"/readyz")
	p.exec(t, ns, "exec", "touch /state/ready")
	p.waitForPod(t, ns, "http", "Ready", ready)
	p.waitForPod(t, ns, "exec", "Ready", ready)
	post(t, web(http)+"/readyz")
	p.exec(t, ns, "exec", "rm /state/ready")
	p.waitForPod(t, ns, "http", "not Ready again", notReady)
	p.waitForPod(t, ns, "exec", "not Ready again", notReady)
}

func TestProgramIsReadyWhenItsPortOpens(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, probed("tcp", "readinessProbe", "tcpSocket: {port: http}"))
	p.waitForPod(t, ns, "tcp", "Ready", ready)
	p.waitForAnswer(t, ns, "tcp", "one from tcp\n")
}

func TestProgramIsRestartedWhenItsLivenessProbeFails(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, probed("web", "livenessProbe", "httpGet: {path: /healthz, port: 8080}, initialDelaySeconds: 5"))
	pod := p.waitForPod(t, ns, "web", "Ready", ready)
	p.waitForAnswer(t, ns, "web", "one from web\n")
	post(t, web(pod)+"/healthz")
	if restarted(pod) == nil {
		t.Fatalf("it was restarted before the probe failed\n%s", p.story(t.Context(), pod))
	}
	p.waitForPod(t, ns, "web", "restarted", restarted)
	p.waitForPod(t, ns, "web", "an event that says why", func(pod *corev1.Pod) error {
		if !strings.Contains(p.story(t.Context(), pod), "Liveness probe failed: HTTP probe failed with statuscode: 500") {
			return errors.New("no event says why")
		}
		return nil
	})
	p.waitForPod(t, ns, "web", "Ready again", ready)
}

func TestProgramThatEndsIsRestartedAsItsPolicySays(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("always", "exit 0", "restartPolicy: Always")+
		shell("fails", "echo died; exit 3", "restartPolicy: OnFailure")+
		shell("succeeds", "exit 0", "restartPolicy: OnFailure")+
		shell("never", "exit 5", "restartPolicy: Never")+
		shell("once", "exit 0", "restartPolicy: Never"))
	p.waitForPod(t, ns, "succeeds", "Succeeded", inPhase(corev1.PodSucceeded))
	p.waitForPod(t, ns, "once", "Succeeded", inPhase(corev1.PodSucceeded))
	failed := p.waitForPod(t, ns, "never", "Failed", inPhase(corev1.PodFailed))
	if end := failed.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 5 || end.Reason != "Error" || failed.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("pod never: %+v", failed.Status.ContainerStatuses[0])
	}
	p.waitForPod(t, ns, "always", "restarted", restarted)
	p.waitForPod(t, ns, "always", "in back-off", waitingFor("CrashLoopBackOff"))
	p.waitForPod(t, ns, "fails", "restarted", restarted)
	pod := p.waitForPod(t, ns, "fails", "in back-off", waitingFor("CrashLoopBackOff"))
	if end := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; end == nil || end.ExitCode != 3 {
		t.Errorf("pod fails: %+v", pod.Status.ContainerStatuses[0])
	}
	// The back-off may have ended in the meantime, but the next back-off follows.
	eventually(t, "the back-off in kubectl get pods", func(context.Context) error {
		out, err := p.tryKubectl("", "get", "pods", "-n", ns, "fails")
		if err != nil || !strings.Contains(out, "CrashLoopBackOff") {
			return fmt.Errorf("%v: %q", err, out)
		}
		return nil
	})
}

func TestProgramSignalledToDeathIsTold(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("killed", `sh -c 'kill -9 $$$$'; exit $?`, "restartPolicy: Never"))
	pod := p.waitForPod(t, ns, "killed", "Failed", inPhase(corev1.PodFailed))
	if end := pod.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 137 {
		t.Errorf("got %+v", pod.Status.ContainerStatuses[0].State)
	}
}

func TestProgramsBeforeTheOthersRunInOrder(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("ordered", "cat /e/order"+forever, `volumes: [{name: e, emptyDir: {}}]
  initContainers:
  - {name: first, image: conformance/sh, args: ["-c", "sleep 0.3; echo first >> /e/order"], volumeMounts: [{name: e, mountPath: /e}]}
  - {name: beside, image: conformance/sh, restartPolicy: Always, args: ["-c", "echo beside >> /e/order`+forever+`"], volumeMounts: [{name: e, mountPath: /e}], startupProbe: {periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 60, exec: {command: [grep, beside, /e/order]}}}
  - {name: second, image: conformance/sh, args: ["-c", "echo second >> /e/order"], volumeMounts: [{name: e, mountPath: /e}]}`)+`
    volumeMounts: [{name: e, mountPath: /e}]
`)
	p.waitForPrograms(t, ns, 1)
	p.waitForLogs(t, "first\nbeside\nsecond\n", "-n", ns, "ordered", "-c", "main")
	pod := p.waitForPod(t, ns, "ordered", "Ready", ready)
	for i, running := range []bool{false, true, false} {
		if c := pod.Status.InitContainerStatuses[i]; (c.State.Running != nil) != running {
			t.Errorf("%s: %s", c.Name, stateOf(c.State))
		}
	}
}

func TestProgramThatMustRunFirstHoldsUpThePodUntilItSucceeds(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("blocked", ":", `restartPolicy: Never
  initContainers: [{name: first, image: conformance/sh, args: ["-c", "exit 4"]}]`))
	pod := p.waitForPod(t, ns, "blocked", "Failed", inPhase(corev1.PodFailed))
	if end := pod.Status.InitContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 4 {
		t.Errorf("the init container: %s", stateOf(pod.Status.InitContainerStatuses[0].State))
	}
	if c := pod.Status.ContainerStatuses[0]; c.State.Waiting == nil {
		t.Errorf("the container: %s", stateOf(c.State))
	}
}

func TestProgramsOfAJobComplete(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, strings.NewReplacer("image: sum", `image: conformance/sh, args: ["-c", "echo $((1+2))"]`).Replace(threeTimes))
	eventually(t, "the Job to complete", func(ctx context.Context) error {
		job, err := p.client.BatchV1().Jobs(ns).Get(ctx, "sum", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("status %+v", job.Status)
	})
	if out := p.kubectl(t, "logs", "-n", ns, "job/sum"); !strings.Contains(out, "3\n") {
		t.Errorf("logs %q", out)
	}
}

func TestProgramIsAskedToEndAndThenEnded(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("polite", `trap "echo asked; exit 0" TERM; echo up`+forever)+
		shell("deaf", `trap "echo asked" TERM; echo up`+forever)+
		shell("hooked", `trap "cat /e/hook; exit 0" TERM; echo up`+forever, "volumes: [{name: e, emptyDir: {}}]")+`
    volumeMounts: [{name: e, mountPath: /e}]
    lifecycle: {preStop: {exec: {command: [sh, -c, "echo hook > /e/hook"]}}}
`)
	for name, test := range map[string]struct {
		logs         string
		grace        string
		atLeast, max time.Duration
	}{
		"polite": {"up\nasked\n", "60", 0, 45 * time.Second},
		"deaf":   {"up\nasked\n", "3", 3 * time.Second, 45 * time.Second},
		"hooked": {"up\nhook\n", "60", 0, 45 * time.Second},
	} {
		p.waitForLogs(t, "up\n", "-n", ns, name)
		logs := p.start(t, "logs", "-f", "-n", ns, name)
		written := func(want string) func(context.Context) error {
			return func(context.Context) error {
				// As with any container runtime, the output may end with a message that the
				// container is gone.
				if got := logs.String(); !strings.HasPrefix(got, want) {
					return fmt.Errorf("logs %q, want %q", got, want)
				}
				return nil
			}
		}
		eventually(t, name+" to be followed", written("up\n"))
		began := time.Now()
		p.kubectl(t, "delete", "pod", "-n", ns, name, "--grace-period="+test.grace)
		if took := time.Since(began); took < test.atLeast || took > test.max {
			t.Errorf("%s: deleted after %v; want %v to %v", name, took, test.atLeast, test.max)
		}
		eventually(t, "the last words of "+name, written(test.logs))
	}
}

func TestProgramIsGreetedByItsPostStartHook(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("hooked", "until test -e /e/hook; do sleep 0.05; done; cat /e/hook"+forever, "volumes: [{name: e, emptyDir: {}}]")+`
    volumeMounts: [{name: e, mountPath: /e}]
    lifecycle: {postStart: {exec: {command: [sh, -c, "echo welcome > /e/hook"]}}}
`)
	p.waitForPrograms(t, ns, 1)
	p.waitForLogs(t, "welcome", "-n", ns, "hooked")
}
