package conformance

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sources holds the objects that the tests use for volumes and variables.
const sources = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: $NS}
data: {colour: red, size: small}
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: $NS}
stringData: {token: hush, key: "12345"}
`

// inContainer waits until a script prints want in the Pod.
func (p *plane) inContainer(t *testing.T, ns, pod, script, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s in pod %s", script, pod), func(context.Context) error {
		out, err := p.tryKubectl("", "exec", "-n", ns, pod, "--", "/bin/sh", "-c", script)
		if err != nil || out != want {
			return fmt.Errorf("%q, %v; want %q", out, err, want)
		}
		return nil
	})
}

func (p *plane) setConfigMap(t *testing.T, ns, name string, data map[string]string) {
	t.Helper()
	_, err := p.client.CoreV1().ConfigMaps(ns).Update(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data,
	}, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestProgramSeesVolumesWhereThisMachineHasNoSuchFolder(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	before := listing(t, "/")
	p.applyIn(t, ns, sources+shell("reader", "cat /conformance/deep/settings/colour; echo"+forever,
		"volumes: [{name: s, configMap: {name: settings}}, {name: k, secret: {secretName: keys, defaultMode: 0440}}]")+
		`    volumeMounts:
    - {name: s, mountPath: /conformance/deep/settings}
    - {name: k, mountPath: /usr/conformance-keys, readOnly: true}
`)
	p.waitForPrograms(t, ns, 1)
	p.waitForLogs(t, "red", "-n", ns, "reader")
	if got := p.exec(t, ns, "reader", "cat /conformance/deep/settings/* /usr/conformance-keys/*"); got != "redsmall12345hush" {
		t.Errorf("the volumes hold %q", got)
	}
	if got := p.exec(t, ns, "reader", "ls /usr/bin/env && ls -d /etc/passwd"); got != "/usr/bin/env\n/etc/passwd\n" {
		t.Errorf("beside the volumes: %q", got)
	}
	if got := p.exec(t, ns, "reader", "stat -L -c %a /usr/conformance-keys/token; touch /usr/conformance-keys/x 2>/dev/null || echo read-only"); got != "440\nread-only\n" {
		t.Errorf("the Secret is %q", got)
	}
	if after := listing(t, "/"); after != before {
		t.Errorf("this machine's / was %s and is %s", before, after)
	}
	if _, err := os.Stat("/usr/conformance-keys"); !os.IsNotExist(err) {
		t.Errorf("the Secret's folder is on this machine: %v", err)
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestProgramSeesChangesOfItsConfigMapAllAtOnce(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	// A reader must never see the two files in different versions. The script resolves
	// ..data once, because the version may change between two reads.
	script := `while :; do d=$(readlink /settings/..data); echo $(cat /settings/$d/colour) $(cat /settings/$d/size); sleep 0.05; done`
	p.applyIn(t, ns, sources+shell("reader", script, "volumes: [{name: s, configMap: {name: settings}}, {name: k, secret: {secretName: keys}}]")+`
    volumeMounts: [{name: s, mountPath: /settings}, {name: k, mountPath: /keys}]
`)
	p.waitForPrograms(t, ns, 1)
	p.waitForLogs(t, "red small", "-n", ns, "reader")
	p.setConfigMap(t, ns, "settings", map[string]string{"colour": "blue", "size": "big"})
	p.waitForLogs(t, "blue big", "-n", ns, "reader")
	seen := map[string]bool{}
	for line := range strings.Lines(p.kubectl(t, "logs", "-n", ns, "reader")) {
		seen[strings.TrimSpace(line)] = true
	}
	if seen["red big"] || seen["blue small"] {
		t.Errorf("the reader saw halves of two versions: %v", seen)
	}
	_, err := p.client.CoreV1().Secrets(ns).Update(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"token": "whisper"},
	}, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.inContainer(t, ns, "reader", "cat /keys/token", "whisper")
	pod := p.waitForPod(t, ns, "reader", "Ready", ready)
	if n := pod.Status.ContainerStatuses[0].RestartCount; n != 0 {
		t.Errorf("it was restarted %d times", n)
	}
}

func TestProgramSeesOneFileOfAVolumeBySubPath(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, sources+shell("reader", ":"+forever, "volumes: [{name: s, configMap: {name: settings}}, {name: e, emptyDir: {}}]")+`
    volumeMounts:
    - {name: s, mountPath: /etc/conformance.conf, subPath: colour}
    - {name: e, mountPath: /data, subPath: a/b}
    - {name: e, mountPath: /all}
`)
	p.waitForPrograms(t, ns, 1)
	if got := p.exec(t, ns, "reader", "cat /etc/conformance.conf; echo; ls /etc/passwd; touch /data/x; ls /all/a/b"); got != "red\n/etc/passwd\nx\n" {
		t.Errorf("got %q", got)
	}
}

func TestProgramSeesProjectedVolumesAndItsOwnPod(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, sources+shell("reader", ":"+forever, `volumes:
  - name: all
    projected:
      sources:
      - configMap: {name: settings, items: [{key: colour, path: from/map}]}
      - secret: {name: keys, items: [{key: token, path: from/secret}]}
      - downwardAPI: {items: [{path: from/pod, fieldRef: {fieldPath: metadata.name}}]}
      - serviceAccountToken: {path: from/token}
  - name: pod
    downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: note, fieldRef: {fieldPath: "metadata.annotations['note']"}}]}`)+`
    volumeMounts: [{name: all, mountPath: /all}, {name: pod, mountPath: /podinfo}]
    env:
    - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    resources: {limits: {cpu: 100m}}
`)
	p.waitForPrograms(t, ns, 1)
	pod := p.waitForPod(t, ns, "reader", "Ready", ready)
	if got, want := p.exec(t, ns, "reader", "cat /all/from/map /all/from/secret /all/from/pod /podinfo/note; test -s /all/from/token && echo"), "redhushreaderof reader\n"; got != want {
		t.Errorf("the volumes hold %q, want %q", got, want)
	}
	if got, want := p.exec(t, ns, "reader", "echo $POD $ADDRESS $NODE $CPU"), "reader "+pod.Status.PodIP+" local 100\n"; got != want {
		t.Errorf("the environment is %q, want %q", got, want)
	}
	p.kubectl(t, "label", "-n", ns, "pod/reader", "late=yes")
	p.inContainer(t, ns, "reader", "cat /podinfo/labels", "app=\"reader\"\nlate=\"yes\"")
}

func TestProgramMayReadAndWriteWhatItsGroupOwns(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, sources+shell("group", "cat /settings/colour /keys/token; echo > /e/x && echo written"+forever, `securityContext: {runAsUser: 1234, runAsGroup: 2000, fsGroup: 2000, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: e, emptyDir: {}}, {name: s, configMap: {name: settings}}, {name: k, secret: {secretName: keys}}]`)+`
    volumeMounts: [{name: s, mountPath: /settings}, {name: k, mountPath: /keys}, {name: e, mountPath: /e}]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`)
	p.waitForPrograms(t, ns, 1)
	p.waitForLogs(t, "redhushwritten", "-n", ns, "group")
}

func TestProgramsOfOnePodShareAnEmptyDir(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, shell("pair", "echo hello > /shared/word"+forever, "volumes: [{name: e, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}]")+`
    volumeMounts: [{name: e, mountPath: /shared}, {name: m, mountPath: /memory}]
  - name: second
    image: conformance/sh
    args: ["-c", "until test -s /elsewhere/word; do sleep 0.05; done; echo heard $(cat /elsewhere/word)`+forever+`"]
    volumeMounts: [{name: e, mountPath: /elsewhere}, {name: m, mountPath: /memory}]
`)
	p.waitForPrograms(t, ns, 1)
	p.waitForLogs(t, "heard hello", "-n", ns, "pair", "-c", "second")
	if got := p.kubectl(t, "exec", "-n", ns, "pair", "-c", "main", "--", "/bin/sh", "-c", "touch /memory/x; hostname"); got != "pair\n" {
		t.Errorf("the host name is %q", got)
	}
}

func TestProgramHasTheEnvironmentOfItsPod(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, sources+shell("reader", "env"+forever)+`
    env:
    - {name: PLAIN, value: text}
    - {name: COMBINED, value: "$(PLAIN) and $(COLOUR)"}
    - {name: COLOUR, valueFrom: {configMapKeyRef: {name: settings, key: colour}}}
    - {name: AGAIN, value: "$(COLOUR)"}
    - {name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: token}}}
    - {name: NONE, valueFrom: {secretKeyRef: {name: keys, key: none, optional: true}}}
    envFrom: [{prefix: S_, configMapRef: {name: settings}}]
`)
	p.waitForPrograms(t, ns, 1)
	apiserver, err := url.Parse(p.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"PLAIN=text", "COLOUR=red", "AGAIN=red", "TOKEN=hush", "S_colour=red", "S_size=small", "HOSTNAME=reader", "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + apiserver.Port()}
	eventually(t, "the environment", func(context.Context) error {
		logs, err := p.tryKubectl("", "logs", "-n", ns, "reader")
		lines := strings.Split(logs, "\n")
		for _, w := range want {
			if !slices.Contains(lines, w) {
				return fmt.Errorf("%v: %s is not in\n%s", err, w, logs)
			}
		}
		if strings.Contains(logs, "NONE=") || strings.Contains(logs, "KOBOSHI") {
			return fmt.Errorf("there is more than the Pod prints:\n%s", logs)
		}
		return err
	})
}

func TestProgramIsGivenCommandAndArgsAsAContainerIs(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	const pod = `
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: $NS}
spec:
  restartPolicy: Never
  containers: [{name: main, image: conformance/sh, env: [{name: WORD, value: hello}], %s}]
`
	for name, test := range map[string]struct{ fields, logs string }{
		"neither":   {"", "nothing to do\n"}, // the image's own args
		"args":      {`args: ["-c", "echo $(WORD) '$$(WORD)' $0", "me"]`, "hello $(WORD) me\n"},
		"command":   {`command: ["/opt/conformance/shell", "-c", "echo $0; echo args: $#"]`, "/opt/conformance/shell\nargs: 0\n"},
		"both":      {`command: ["/opt/conformance/shell", "-c"], args: ["echo both"]`, "both\n"},
		"directory": {`args: ["-c", "pwd"], workingDir: /usr`, "/usr\n"},
	} {
		p.applyIn(t, ns, fmt.Sprintf(pod, name, test.fields))
		p.waitForPod(t, ns, name, "Succeeded", inPhase(corev1.PodSucceeded))
		if got := p.kubectl(t, "logs", "-n", ns, name); got != test.logs {
			t.Errorf("%s: logs %q, want %q", name, got, test.logs)
		}
	}
}

func TestContentOfAClaimOutlivesItsPodAndGoesWithTheClaim(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	pod := shell("writer", ":"+forever, "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]") + `
    volumeMounts: [{name: d, mountPath: /data}]
`
	p.applyIn(t, ns, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: $NS}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`+pod)
	p.waitForPrograms(t, ns, 1)
	p.exec(t, ns, "writer", "echo kept > /data/file")
	p.kubectl(t, "delete", "pod", "-n", ns, "writer")
	p.applyIn(t, ns, pod)
	p.waitForPrograms(t, ns, 1)
	if got := p.exec(t, ns, "writer", "cat /data/file"); got != "kept\n" {
		t.Errorf("the next Pod reads %q", got)
	}
	claim, err := p.client.CoreV1().PersistentVolumeClaims(ns).Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := p.client.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.kubectl(t, "delete", "pod", "-n", ns, "writer")
	p.kubectl(t, "delete", "pvc", "-n", ns, "data")
	eventually(t, "the content to be deleted", func(context.Context) error {
		if _, err := os.Stat(v.Spec.HostPath.Path); !os.IsNotExist(err) {
			return fmt.Errorf("%s is still there: %w", v.Spec.HostPath.Path, err)
		}
		return nil
	})
}
