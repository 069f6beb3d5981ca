package oncluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// pause is the time between two looks at a Job.
	pause = time.Second
	// patience is the number of looks in a row that may fail, because an API server is restarted, for example.
	patience = 60
)

// await waits until all indexes of a Job have ended. It calls ended for each, with its document, or, if it has
// none, with the reason.
func (r *run) await(ctx context.Context, job string, indexes int, ended func(index int, d Document, why string)) error {
	known := make([]bool, indexes)
	watched := newPods(r, job, indexes)
	failures := 0
	return wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		err := watched.look(ctx)
		if err == nil {
			err = r.look(ctx, watched, known, ended)
		}
		if apierrors.IsNotFound(err) {
			return false, fmt.Errorf("the Job %s was deleted", job)
		}
		if err == nil {
			failures = 0
			return !slices.Contains(known, false), nil
		}
		if failures++; failures == patience || isFinal(err) {
			return false, err
		}
		return false, nil
	})
}

// isFinal reports whether another request would have the same result.
func isFinal(err error) bool {
	var unreadable *documentError
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || errors.As(err, &unreadable)
}

// documentError means that a document cannot be read.
type documentError struct{ error }

// look calls ended for the indexes that have ended since the last look.
func (r *run) look(ctx context.Context, watched *pods, known []bool, ended func(index int, d Document, why string)) error {
	job, err := r.Client.BatchV1().Jobs(r.Namespace).Get(ctx, watched.job, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := endedIndexes(job, len(known))
	if !slices.ContainsFunc(now, func(i int) bool { return !known[i] }) {
		return nil
	}
	documents, err := r.documents(ctx, watched.job)
	if err != nil {
		return err
	}
	for _, i := range now {
		if known[i] {
			continue
		}
		known[i] = true
		d, ok := documents[i]
		switch {
		case !ok:
			d.Error = watched.failure(i)
		case d.Error != "":
			d.Plan, d.Part = nil, nil
		}
		ended(i, d, d.Error)
	}
	return nil
}

// endedIndexes returns the indexes that have succeeded or failed.
func endedIndexes(job *batchv1.Job, indexes int) (all []int) {
	failed := ""
	if job.Status.FailedIndexes != nil {
		failed = *job.Status.FailedIndexes
	}
	over := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
	for i := range indexes {
		if over || contains(job.Status.CompletedIndexes, i) || contains(failed, i) {
			all = append(all, i)
		}
	}
	return all
}

// contains reports whether an index is in a list such as "0,3-5".
func contains(list string, index int) bool {
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 == nil && err2 == nil && from <= index && index <= to {
			return true
		}
	}
	return false
}

// documents reads all documents of a Job.
func (r *run) documents(ctx context.Context, job string) (map[int]Document, error) {
	list, err := r.Client.CoreV1().ConfigMaps(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: jobLabel + "=" + job + "," + indexLabel})
	if err != nil {
		return nil, err
	}
	documents, err := assemble(list.Items)
	if err != nil {
		return nil, &documentError{err}
	}
	return documents, nil
}

// pods notes what the user should know about the Pods of a Job.
type pods struct {
	*run
	job     string
	indexes int
	running map[string]bool   // by name
	ends    map[string]string // how the last Pod of an index failed
	said    map[string]bool
}

func newPods(r *run, job string, indexes int) *pods {
	return &pods{run: r, job: job, indexes: indexes, running: map[string]bool{}, ends: map[string]string{}, said: map[string]bool{}}
}

// failure returns why an index has no result.
func (p *pods) failure(index int) string {
	why := "its Pods failed, and returned no result"
	if last, ok := p.ends[strconv.Itoa(index)]; ok {
		why += "; " + last
	}
	return why + "; to read their logs, repeat the check with --keep, and use kubectl logs"
}

func (p *pods) look(ctx context.Context) error {
	list, err := p.Client.CoreV1().Pods(p.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + p.job})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase == corev1.PodFailed {
			p.failed(pod)
		}
		switch {
		case pod.DeletionTimestamp != nil:
			p.running[pod.Name] = pod.Status.Phase != corev1.PodSucceeded
		case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
			delete(p.running, pod.Name)
		default:
			there[pod.Name], p.running[pod.Name] = true, true
			if why := waitsFor(pod); why != "" {
				p.once(fmt.Sprintf("Pod %s waits: %s", pod.Name, why))
			}
		}
	}
	for name, ran := range p.running {
		if ran && !there[name] {
			p.once(fmt.Sprintf("Pod %s was deleted; another one repeats its part", name))
			delete(p.running, name)
		}
	}
	if len(list.Items) < p.indexes {
		return p.refused(ctx)
	}
	return nil
}

// failed notes a Pod that failed, unless it was asked to end, or has returned the reason as its result.
func (p *pods) failed(pod *corev1.Pod) {
	for _, c := range pod.Status.ContainerStatuses {
		t := c.State.Terminated
		if t == nil || t.ExitCode == CouldNot || t.ExitCode == terminated {
			continue
		}
		end := fmt.Sprintf("Pod %s ended with exit code %d: %s", pod.Name, t.ExitCode, mostTelling(t.Message))
		p.ends[pod.Labels[batchv1.JobCompletionIndexAnnotation]] = end
		p.once(end)
	}
}

// mostTelling returns the line of a log that says best why the program ended: the first line of a panic, or else
// the last line.
func mostTelling(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	i := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
	})
	if i < 0 {
		i = len(lines) - 1
	}
	return lines[i]
}

func (p *pods) once(text string) {
	if !p.said[text] {
		p.said[text] = true
		p.Observer.Note(text)
	}
}

// waitsFor returns why a Pod does not run, if the user may have to do something.
func waitsFor(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return "no node has room: " + c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "RunContainerError", "CreateContainerError"}, w.Reason) {
			return fmt.Sprintf("%s: %s", w.Reason, w.Message)
		}
	}
	return ""
}

// refused notes the Events of a Job whose Pods are refused, by a quota for example. A user who may not read
// Events sees nothing.
func (p *pods) refused(ctx context.Context) error {
	events, err := p.Client.CoreV1().Events(p.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "reason=FailedCreate,involvedObject.kind=Job,involvedObject.name=" + p.job,
	})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range events.Items {
		p.once("the cluster refuses a Pod of the check: " + e.Message)
	}
	return nil
}

// persist repeats a request until it succeeds, or cannot succeed.
func persist(ctx context.Context, request func(context.Context) error) error {
	failures := 0
	return wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		err := request(ctx)
		if err == nil {
			return true, nil
		}
		if failures++; failures == patience || isFinal(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
			return false, err
		}
		return false, nil
	})
}
