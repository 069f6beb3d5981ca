package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// site is a Deployment of servers that keep answering for a moment after SIGTERM. In any
// cluster, servers must keep answering after SIGTERM, because proxies and the Pod learn at
// the same time that the Pod is ending.
const site = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: site, namespace: $NS}
spec:
  replicas: 2
  selector: {matchLabels: {app: site}}
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata: {labels: {app: site}}
    spec:
      containers:
      - name: web
        image: conformance/web:1
        args: ["-drain=2s"]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {periodSeconds: 1, httpGet: {path: /readyz, port: http}}
---
apiVersion: v1
kind: Service
metadata: {name: site, namespace: $NS}
spec: {selector: {app: site}, ports: [{name: http, port: 80, targetPort: http}, {name: none, port: 81, protocol: UDP}]}
`

var reachableAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// address waits until a Service is reachable and returns its URL.
func (p *plane) address(t *testing.T, ns, name string) (url string) {
	t.Helper()
	eventually(t, "an address of service "+name, func(ctx context.Context) error {
		service, err := p.client.CoreV1().Services(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, e := range p.eventsOf(ctx, service) {
			if url = reachableAt.FindString(e.Message); url != "" && e.Reason == "Reachable" {
				return nil
			}
		}
		return errors.New("no event contains the address")
	})
	return url
}

// waitForSite waits until only the newest Pods of the Deployment site are left.
func (p *plane) waitForSite(t *testing.T, ns string) {
	t.Helper()
	eventually(t, "the rollout of site", func(ctx context.Context) error {
		d, err := p.client.AppsV1().Deployments(ns).Get(ctx, "site", metav1.GetOptions{})
		if err != nil {
			return err
		}
		want := *d.Spec.Replicas
		if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != want || s.AvailableReplicas != want || s.Replicas != want {
			pods, err := p.pods(ctx, ns)
			var stories []string
			for i := range pods {
				stories = append(stories, pods[i].Name+": "+p.story(ctx, &pods[i]))
			}
			return fmt.Errorf("status %+v at generation %d, %w\n%s", s, d.Generation, err, strings.Join(stories, "\n"))
		}
		return nil
	})
}

func TestServiceOfProgramsIsReachableAtThePrintedAddress(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, strings.Replace(site, "name: site, namespace: $NS}\nspec: {selector", "name: site, namespace: $NS}\nspec: {type: NodePort, selector", 1))
	p.waitForSite(t, ns)
	url := p.address(t, ns, "site")
	line := "service " + ns + "/site  " + url + "\n"
	eventually(t, "the address to be printed", func(context.Context) error {
		if !strings.Contains(p.output.String(), line) {
			return fmt.Errorf("koboshi up did not print %q", line)
		}
		return nil
	})
	service, err := p.client.CoreV1().Services(ns).Get(t.Context(), "site", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if port := service.Spec.Ports[0].NodePort; url != fmt.Sprintf("http://127.0.0.1:%d", port) {
		t.Errorf("the address is %s, and the node port %d", url, port)
	}
	pods, err := p.pods(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, pod := range pods {
		want = append(want, "one from "+pod.Name+"\n")
	}
	// The status of the Deployment may show a Pod as Ready before the forwarder notices it.
	eventually(t, "answers of both Pods", func(context.Context) error {
		got := map[string]bool{}
		for range 10 {
			page, err := answers(t.Context(), http.MethodGet, url)
			if err != nil {
				return err
			}
			got[page] = true
		}
		return wantSet("answers", slices.Collect(maps.Keys(got)), want)
	})
}

func TestServiceOfProgramsFollowsReadinessAndItsSelector(t *testing.T) {
	t.Parallel()
	p := programPlane(t)
	ns := p.namespace(t)
	for _, name := range []string{"blue", "green"} {
		p.applyIn(t, ns, strings.ReplaceAll(strings.ReplaceAll(probed(name, "readinessProbe", "httpGet: {path: /readyz, port: http}"),
			"namespace: $NS}", "namespace: $NS, labels: {app: "+name+"}}"), "args: []", "args: [-says="+name+"]"))
	}
	p.applyIn(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: site, namespace: $NS}
spec: {selector: {app: blue}, ports: [{port: 80, targetPort: 8080}]}
`)
	p.waitForPrograms(t, ns, 2)
	url := p.address(t, ns, "site")
	mustAnswer(t, url, "blue from blue\n")
	p.kubectl(t, "patch", "service", "-n", ns, "site", "-p", `{"spec":{"selector":{"app":"green"}}}`)
	eventually(t, "an answer of green", func(ctx context.Context) error {
		got, err := answers(ctx, http.MethodGet, url)
		if err == nil && got != "green from green\n" {
			err = fmt.Errorf("%q", got)
		}
		return err
	})
	green := p.waitForPod(t, ns, "green", "Ready", ready)
	post(t, web(green)+"/readyz")
	eventually(t, "no answer", func(ctx context.Context) error {
		if got, err := answers(ctx, http.MethodGet, url); err == nil {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	post(t, web(green)+"/readyz")
	eventually(t, "an answer again", func(ctx context.Context) error {
		_, err := answers(ctx, http.MethodGet, url)
		return err
	})
	p.kubectl(t, "delete", "service", "-n", ns, "site")
	eventually(t, "no answer of a deleted Service", func(ctx context.Context) error {
		if got, err := answers(ctx, http.MethodGet, url); err == nil {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
}

// visitors counts the answers of clients that request a page again and again.
type visitors struct {
	mu       sync.Mutex
	answered map[string]int
	failed   []error
}

// visit runs n visitors until stop is called. stop waits for the last responses.
func visit(ctx context.Context, url string, n int) (v *visitors, stop func()) {
	v = &visitors{answered: map[string]int{}}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				page, err := answers(context.WithoutCancel(ctx), http.MethodGet, url)
				says, _, _ := strings.Cut(page, " ")
				v.mu.Lock()
				if err != nil {
					v.failed = append(v.failed, err)
				} else {
					v.answered[says]++
				}
				v.mu.Unlock()
			}
		})
	}
	return v, func() { cancel(); all.Wait() }
}

func TestNotOneRequestFailsDuringTenRollouts(t *testing.T) {
	p := programPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, site)
	p.waitForSite(t, ns)
	url := p.address(t, ns, "site")
	v, stop := visit(t.Context(), url, 2)
	for i := range 10 {
		image := fmt.Sprintf("conformance/web:%d", 2-i%2)
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, image)
		if _, err := p.client.AppsV1().Deployments(ns).Patch(t.Context(), "site", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		p.waitForSite(t, ns)
		want := map[string]string{"conformance/web:1": "one", "conformance/web:2": "two"}[image]
		eventually(t, "an answer of "+image, func(ctx context.Context) error {
			page, err := answers(ctx, http.MethodGet, url)
			if err == nil && !strings.HasPrefix(page, want+" ") {
				err = errors.New(page)
			}
			return err
		})
	}
	stop()
	t.Logf("answered %v", v.answered)
	if len(v.failed) > 0 {
		t.Errorf("%d requests failed, the first with %v", len(v.failed), v.failed[0])
	}
	if v.answered["one"] == 0 || v.answered["two"] == 0 || len(v.answered) != 2 {
		t.Errorf("answers %v; want both versions", v.answered)
	}
}
