package upgrade

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// rolling lists the kinds whose Pods are replaced when their template changes.
var rolling = []string{"Deployment.apps", "StatefulSet.apps", "DaemonSet.apps"}

// missed lists the kinds of objects whose deletion users notice, in addition to custom resources: Pods
// end, a name or an address is gone, or data is.
var missed = append([]string{"Pod", "Service", "Secret", "PersistentVolumeClaim", "Ingress.networking.k8s.io", "CronJob.batch"}, rolling...)

// churn finds what the upgrade does to running workloads although no user has changed a resource. Each
// change counts, even if the new version changes it back.
func (r *run) churn() (findings []judge.Finding) {
	before, after := r.before(), r.find(Up)
	if before == nil || after == nil {
		return nil
	}
	done := map[string]bool{}
	for _, c := range r.Run.History.Between(before.Rested, r.end(Up)) {
		if !r.made[c.Ref] || r.Installed(c.Ref) {
			continue
		}
		f := r.churnOf(c)
		if f == nil || done[f.ID] {
			continue
		}
		done[f.ID] = true
		findings = append(findings, *f)
	}
	return findings
}

// end returns the last revision that belongs to a step.
func (r *run) end(name string) int64 {
	at := slices.IndexFunc(r.Run.Steps, func(s evidence.Step) bool { return s.Name == name })
	if at >= 0 && at+1 < len(r.Run.Steps) {
		return r.Run.Steps[at+1].Began
	}
	return r.Run.History.Last()
}

// churnOf returns the finding about one change of an object, or nil.
func (r *run) churnOf(c state.Change) *judge.Finding {
	key, kind := r.labels.Of(c.Ref), c.Ref.String()
	var outcome string
	var differences []state.Difference
	switch {
	case c.Op == state.Deleted:
		if !r.isMissed(c) {
			return nil
		}
		outcome = key + " is deleted"
		if r.createdAfter(c) {
			outcome += " and created again"
		}
		differences = []state.Difference{{Object: key, Want: "there"}}
	case c.Op != state.Updated || c.Before.Metadata("uid") != c.After.Metadata("uid"):
		return nil
	case slices.Contains(rolling, kind) && rolls(c):
		outcome = fmt.Sprintf("the Pod template of %s is changed, so its Pods are replaced", key)
		differences = fieldDifferences(key, "spec.template", inSpec(c.Before, "template"), inSpec(c.After, "template"))
	case kind == "Service" && r.loses(c):
		outcome = fmt.Sprintf("the selector of %s is changed, so it selects none of the Pods that are running", key)
		differences = fieldDifferences(key, "spec.selector", inSpec(c.Before, "selector"), inSpec(c.After, "selector"))
	default:
		return nil
	}
	f := judge.Upgraded(judge.UpgradeChurn, r.Run, Up, c.Ref.Name+string(c.Op), outcome+", although no user has changed a resource", differences)
	return &f
}

// rolls reports whether a change of a workload replaces Pods.
func rolls(c state.Change) bool {
	if reflect.DeepEqual(inSpec(c.Before, "template"), inSpec(c.After, "template")) {
		return false
	}
	strategy, _ := inSpec(c.After, "updateStrategy").(map[string]any)
	replicas, scaled := inSpec(c.After, "replicas").(float64)
	if whole, ok := inSpec(c.After, "replicas").(int64); ok {
		replicas, scaled = float64(whole), true
	}
	return inSpec(c.After, "paused") != true && strategy["type"] != "OnDelete" && (!scaled || replicas > 0)
}

// isMissed reports whether users notice a deletion. Kubernetes' own controllers replace Pods, and an
// object that had done its work may go.
func (r *run) isMissed(c state.Change) bool {
	if c.Before.MadeUpstream() {
		return false
	}
	status, _ := c.Before["status"].(map[string]any)
	if c.Ref.String() == "Pod" && (status["phase"] == "Succeeded" || status["phase"] == "Failed") {
		return false
	}
	return slices.Contains(missed, c.Ref.String()) || r.isCustom(c.Ref)
}

// isCustom reports whether an object is of a kind that one of the versions defines.
func (r *run) isCustom(ref state.Ref) bool { return r.isCustomKind(ref.String()) }

// createdAfter reports whether an object is created again after its deletion.
func (r *run) createdAfter(c state.Change) bool {
	return slices.ContainsFunc(r.Run.History.Changes, func(other state.Change) bool {
		return other.Ref == c.Ref && other.Op == state.Created && other.Revision > c.Revision
	})
}

// loses reports whether a Service has selected Pods, and selects none any longer. A controller may
// switch a Service to new Pods on purpose, once they are ready. In a plane without Pods, the templates of
// workloads stand for them.
func (r *run) loses(c state.Change) bool {
	was, _ := inSpec(c.Before, "selector").(map[string]any)
	is, _ := inSpec(c.After, "selector").(map[string]any)
	if len(was) == 0 || reflect.DeepEqual(was, is) {
		return false
	}
	had := false
	for ref, object := range r.Run.History.Living(c.Revision - 1) {
		labels := object.Labels()
		switch {
		case ref.Namespace != c.Ref.Namespace:
			continue
		case slices.Contains(rolling, ref.String()):
			template, _ := inSpec(object, "template").(map[string]any)
			labels = state.Object(template).Labels()
		case ref.String() != "Pod":
			continue
		}
		if len(is) > 0 && selects(is, labels) {
			return false
		}
		had = had || selects(was, labels)
	}
	return had
}

func selects(selector, labels map[string]any) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func inSpec(object map[string]any, field string) any {
	spec, _ := object["spec"].(map[string]any)
	return spec[field]
}

// underStatus reports whether a path is in a status.
func underStatus(path string) bool {
	return path == "status" || strings.HasPrefix(path, "status.") || strings.HasPrefix(path, "status[")
}
