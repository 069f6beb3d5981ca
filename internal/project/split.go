package project

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

const (
	groupCRD       = "apiextensions.k8s.io"
	groupRBAC      = "rbac.authorization.k8s.io"
	groupAdmission = "admissionregistration.k8s.io"
)

func (d document) is(group string, kinds ...string) bool {
	return d.Object.GroupVersionKind().Group == group && slices.Contains(kinds, d.Object.GetKind())
}

func isCRD(d document) bool { return d.is(groupCRD, "CustomResourceDefinition") }

func isWebhook(d document) bool {
	return d.is(groupAdmission, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}

func isRBAC(d document) bool { return d.Object.GroupVersionKind().Group == groupRBAC || isAccount(d) }

func isAccount(d document) bool { return d.is("", "ServiceAccount") }

func isWorkload(d document) bool { return d.is("apps", "Deployment", "StatefulSet", "DaemonSet") }

// parts holds the objects, grouped by how they are used.
type parts struct {
	install, webhooks, workloads []document
	issued                       []string                         // the Secrets that cert-manager would issue
	served                       map[schema.GroupVersionKind]bool // the kinds that the CRDs serve
	primary                      []string                         // "Kind.group" of the CRDs
}

// describe derives the subject from all objects, and from the resources that PROJECT lists.
func (p *Project) describe(docs []document, listed []projectfile.Resource) error {
	parts, err := p.split(docs)
	if err != nil {
		return err
	}
	if p.manager, err = p.pickManager(parts); err != nil {
		return err
	}
	s := subject.Subject{Name: p.Name, Dir: p.Dir, Primary: p.primary(parts, listed)}
	if s.Identity, err = p.identity(&parts); err != nil {
		return err
	}
	s.Roles, s.UnknownRoles = p.roles(parts, s.Identity)
	p.leaveOutOtherWebhooks(&parts)
	if err := p.addStubs(&parts, s.Identity); err != nil {
		return err
	}
	parts.complete(s.Identity)
	slices.SortStableFunc(parts.install, func(a, b document) int { return cmp.Compare(rank(a), rank(b)) })
	for _, d := range parts.install {
		s.Install = append(s.Install, d.Object)
	}
	for _, d := range parts.webhooks {
		s.Webhooks = append(s.Webhooks, d.Object)
	}
	if p.manager != nil {
		if err := p.manager.resolve(p, parts, s.Identity); err != nil {
			return err
		}
		s.Files = p.manager.files
		if s.Self, err = p.manager.self(); err != nil {
			return err
		}
	}
	if p.options.WebhookPort > 0 && !conversion(s.Webhooks) && !conversion(s.Install) {
		return fmt.Errorf("%s has no effect, because the installation has no webhook that is called through a Service; name webhooks with %s, or omit %s", flagWebhookPort, flagWebhooks, flagWebhookPort)
	}
	p.Subject = s
	if len(p.options.Command) > 0 {
		return p.useCommand()
	}
	return nil
}

func (p *Project) split(docs []document) (parts, error) {
	parts := parts{served: map[schema.GroupVersionKind]bool{}}
	for _, d := range docs {
		if !isCRD(d) {
			continue
		}
		if err := parts.define(d); err != nil {
			return parts, err
		}
		if d.foreign {
			continue
		}
		if !slices.Contains(p.CRDs, d.File) {
			p.CRDs = append(p.CRDs, d.File)
		}
	}
	if len(parts.served) == 0 {
		ofChart := ""
		if p.options.Helm != "" {
			ofChart = ", or set the value of the chart that adds them, often crds.enabled"
		}
		p.note("there is no CustomResourceDefinition in the installation; if the controller has any, use %s to name their file or folder%s%s", flagCRDs, p.definitionHint(), ofChart)
	}
	var left, once []string
	for _, d := range docs {
		if d.Object.GetKind() == "Certificate" {
			name, _, _ := unstructured.NestedString(d.Object.Object, "spec", "secretName")
			parts.issued = append(parts.issued, name)
		}
		switch {
		case runsOnce(d):
			once = append(once, d.String())
		case isWebhook(d):
			parts.webhooks = append(parts.webhooks, d)
		case isWorkload(d):
			parts.workloads = append(parts.workloads, d)
		case d.Object.GetKind() == "APIService" || !isCRD(d) && !parts.defined(d):
			left = append(left, fmt.Sprintf("%s (%s)", d, d.Object.GetAPIVersion()))
		default:
			parts.install = append(parts.install, d)
		}
	}
	if len(once) > 0 {
		p.note("left out, because only the controller is run: %s", strings.Join(once, ", "))
	}
	if len(left) > 0 {
		p.note("left out, because the plane does not serve their kinds: %s", strings.Join(left, ", "))
	}
	return parts, nil
}

// runsOnce reports whether the object starts programs other than the controller, such as
// the Job of a Helm hook, or belongs to a test of a chart.
func runsOnce(d document) bool {
	return strings.HasPrefix(d.Object.GetAnnotations()["helm.sh/hook"], "test") || d.is("batch", "Job", "CronJob") || d.is("", "Pod", "ReplicationController") || d.is("apps", "ReplicaSet")
}

// define checks a CRD and records the kinds that it serves.
func (ps *parts) define(d document) error {
	if d.Object.GroupVersionKind().Version != "v1" {
		return d.errorf("%s is no longer served; generate it as apiextensions.k8s.io/v1", d.Object.GetAPIVersion())
	}
	var crd apiextensionsv1.CustomResourceDefinition
	data, err := d.Object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(data, &crd) // an error here names the field
	}
	if err != nil {
		return d.errorf("%w; correct the CRD, or generate it again", err)
	}
	if crd.Spec.Group == "" || crd.Spec.Names.Kind == "" || len(crd.Spec.Versions) == 0 {
		return d.errorf("spec.group, spec.names.kind or spec.versions is missing; correct the CRD, or generate it again")
	}
	for _, version := range crd.Spec.Versions {
		if version.Served {
			ps.served[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = true
		}
	}
	if key := crd.Spec.Names.Kind + "." + crd.Spec.Group; !d.foreign && !slices.Contains(ps.primary, key) {
		ps.primary = append(ps.primary, key)
	}
	return nil
}

func (ps *parts) defined(d document) bool {
	gvk := d.Object.GroupVersionKind()
	return scheme.Scheme.Recognizes(gvk) && !isPrerelease(gvk) || ps.served[gvk]
}

// primary returns the kinds that have controllers according to PROJECT, and also the
// kinds of CRDs that PROJECT does not mention, because such CRDs were added by hand.
func (p *Project) primary(parts parts, listed []projectfile.Resource) []string {
	var kinds, known []string
	for _, r := range listed {
		known = append(known, key(r))
		if r.Reconciled() && !slices.Contains(kinds, key(r)) {
			kinds = append(kinds, key(r))
		}
	}
	for _, kind := range parts.primary {
		if !slices.Contains(known, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// order lists kinds in the order in which they are created. Other kinds come last.
var order = []string{
	"Namespace", "CustomResourceDefinition", "PriorityClass", "ServiceAccount", "ClusterRole", "Role",
	"ClusterRoleBinding", "RoleBinding", "ConfigMap", "Secret", "Service",
}

func rank(d document) int {
	if i := slices.Index(order, d.Object.GetKind()); i >= 0 {
		return i
	}
	return len(order)
}

// ownNamespaces lists the namespaces that exist in every cluster.
var ownNamespaces = []string{"", "default", "kube-system", "kube-public", "kube-node-lease"}

// complete adds the service account and the namespaces if they are missing.
func (ps *parts) complete(id subject.ServiceAccount) {
	if id.Name != "" && id.Name != "default" && !ps.has("ServiceAccount", id.Namespace, id.Name) {
		account := object("v1", "ServiceAccount", id.Namespace, id.Name)
		ps.install = append(ps.install, document{Object: account})
	}
	for _, d := range slices.Clone(ps.install) {
		namespace := d.Object.GetNamespace()
		if !slices.Contains(ownNamespaces, namespace) && !ps.has("Namespace", "", namespace) {
			ps.install = append(ps.install, document{Object: object("v1", "Namespace", "", namespace)})
		}
	}
}

func (ps *parts) has(kind, namespace, name string) bool {
	return ps.find(kind, namespace, name) != nil
}

// find returns the object of the core or RBAC group with this kind and name, or nil.
func (ps *parts) find(kind, namespace, name string) *document {
	for i, d := range ps.install {
		o := d.Object
		if !d.is("", kind) && !d.is(groupRBAC, kind) || o.GetName() != name {
			continue
		}
		if namespace == "" || namespaceOf(o) == namespace {
			return &ps.install[i]
		}
	}
	return nil
}

// namespaceOf returns the namespace of an object, or default.
func namespaceOf(o unstructured.Unstructured) string {
	return cmp.Or(o.GetNamespace(), "default")
}

func object(apiVersion, kind, namespace, name string) unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	if namespace != "" {
		o.SetNamespace(namespace)
	}
	return o
}
