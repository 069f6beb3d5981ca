package v1

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

// The functions in this file check the API's rules for fields that are copied into the
// children of a site. Without these checks, only a condition would show that the API server
// refuses a child.

func checkItems(items []viewv1.ContentItem, at *field.Path, found *findings) {
	paths := map[string]bool{}
	for i, item := range items {
		for _, message := range validation.IsConfigMapKey(item.Key) {
			found.refuse(field.Invalid(at.Index(i).Child("key"), item.Key, message))
		}
		child, path := "path", item.Path
		if path == "" {
			child, path = "key", item.Key
		}
		if paths[path] {
			found.refuse(field.Duplicate(at.Index(i).Child(child), path))
		}
		paths[path] = true
	}
}

// checkPublishing checks how the site is exposed.
func checkPublishing(spec *viewv1.MarkdownViewSpec, at *field.Path, found *findings) {
	if s := spec.Service; s != nil {
		checkAnnotations(s.Annotations, at.Child("service"), found)
	}
	if i := spec.Ingress; i != nil {
		at := at.Child("ingress")
		checkHost(i.Host, at.Child("host"), found)
		if i.ClassName != nil {
			checkName(*i.ClassName, at.Child("className"), found)
		}
		if i.TLSSecretName != "" {
			checkName(i.TLSSecretName, at.Child("tlsSecretName"), found)
		}
		checkAnnotations(i.Annotations, at, found)
	}
	if r := spec.HTTPRoute; r != nil {
		checkRoute(r, at.Child("httpRoute"), found)
	}
	if n := spec.NetworkPolicy; n != nil {
		checkPeers(n.From, at.Child("networkPolicy", "from"), found)
	}
}

func checkRoute(r *viewv1.HTTPRouteSettings, at *field.Path, found *findings) {
	seen := map[viewv1.GatewayRef]bool{}
	for i, ref := range r.ParentRefs {
		at := at.Child("parentRefs").Index(i)
		checkName(ref.Name, at.Child("name"), found)
		if ref.Namespace != "" {
			refuseAll(validation.IsDNS1123Label(ref.Namespace), ref.Namespace, at.Child("namespace"), found)
		}
		if ref.SectionName != "" {
			checkName(ref.SectionName, at.Child("sectionName"), found)
		}
		if seen[ref] {
			found.refuse(field.Duplicate(at, ref.Name))
		}
		seen[ref] = true
	}
	hosts := map[string]bool{}
	for i, host := range r.Hostnames {
		at := at.Child("hostnames").Index(i)
		checkHost(host, at, found)
		if hosts[host] {
			found.refuse(field.Duplicate(at, host))
		}
		hosts[host] = true
	}
	checkAnnotations(r.Annotations, at, found)
}

func checkPeers(peers []viewv1.NetworkPolicyPeer, at *field.Path, found *findings) {
	for i, peer := range peers {
		at := at.Index(i)
		if peer.PodSelector == nil && peer.NamespaceSelector == nil {
			found.refuse(field.Required(at, "must have a podSelector or a namespaceSelector; the selector {} selects everything"))
		}
		options := metav1validation.LabelSelectorValidationOptions{}
		found.refuse(metav1validation.ValidateLabelSelector(peer.PodSelector, options, at.Child("podSelector"))...)
		found.refuse(metav1validation.ValidateLabelSelector(peer.NamespaceSelector, options, at.Child("namespaceSelector"))...)
	}
}

// checkPods checks where and how the viewers run.
func checkPods(spec *viewv1.MarkdownViewSpec, at *field.Path, found *findings) {
	if r := spec.Resources; r != nil {
		checkResources(r, at.Child("resources"), found)
	}
	pod, at := spec.Pod, at.Child("pod")
	if pod == nil {
		return
	}
	found.refuse(metav1validation.ValidateLabels(pod.Labels, at.Child("labels"))...)
	for _, key := range slices.Sorted(maps.Keys(pod.Labels)) {
		if isReserved(key) {
			found.refuse(field.Forbidden(at.Child("labels").Key(key), "is a label that the operator sets itself; choose another name"))
		}
	}
	checkAnnotations(pod.Annotations, at, found)
	found.refuse(metav1validation.ValidateLabels(pod.NodeSelector, at.Child("nodeSelector"))...)
	for i, c := range pod.TopologySpreadConstraints {
		found.refuse(metav1validation.ValidateLabelSelector(c.LabelSelector, metav1validation.LabelSelectorValidationOptions{},
			at.Child("topologySpreadConstraints").Index(i).Child("labelSelector"))...)
	}
	if pod.PriorityClassName != "" {
		checkName(pod.PriorityClassName, at.Child("priorityClassName"), found)
	}
	for i, secret := range pod.ImagePullSecrets {
		checkName(secret.Name, at.Child("imagePullSecrets").Index(i).Child("name"), found)
	}
}

// isReserved reports whether the operator uses this label to find its children.
func isReserved(key string) bool {
	_, ours := children.Labels("")[key]
	return ours || strings.HasPrefix(key, viewv1.GroupVersion.Group+"/")
}

func checkResources(r *corev1.ResourceRequirements, at *field.Path, found *findings) {
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		if limit, limited := r.Limits[name]; limited && request.Cmp(limit) > 0 {
			found.refuse(field.Invalid(at.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must not be more than the limit of %s", limit.String())))
		}
	}
}

func checkName(name string, at *field.Path, found *findings) {
	refuseAll(validation.IsDNS1123Subdomain(name), name, at, found)
}

// checkHost checks a host name, and refuses wildcards, because the URL of the site contains
// the host.
func checkHost(host string, at *field.Path, found *findings) {
	if net.ParseIP(host) != nil {
		found.refuse(field.Invalid(at, host, "must be a DNS name, not an IP address"))
		return
	}
	checkName(host, at, found)
}

func checkAnnotations(annotations map[string]string, at *field.Path, found *findings) {
	found.refuse(apivalidation.ValidateAnnotations(annotations, at.Child("annotations"))...)
}

func refuseAll(messages []string, value string, at *field.Path, found *findings) {
	for _, message := range messages {
		found.refuse(field.Invalid(at, value, message))
	}
}
