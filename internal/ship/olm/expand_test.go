package olm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/ship/olm"
)

// expand returns the objects that OLM v0 would make from the files of a bundle in a namespace, as in
// its packages pkg/controller/install and pkg/controller/registry/resolver. Names that OLM makes from
// hashes are numbered.
func expand(t *testing.T, b *olm.Bundle, namespace string) []unstructured.Unstructured {
	t.Helper()
	e := expansion{namespace: namespace, csv: csvOf(t, b)}
	for path, text := range b.Files {
		if strings.HasPrefix(path, "manifests/") && !strings.HasSuffix(path, ".clusterserviceversion.yaml") {
			e.addFile(objects(t, string(text))[0])
		}
	}
	strategy := at[map[string]any](e.csv, "spec", "install", "spec")
	e.addPermissions(strategy, "permissions", "Role")
	e.addPermissions(strategy, "clusterPermissions", "ClusterRole")
	e.addWebhooks()
	for _, d := range at[[]any](strategy, "deployments") {
		e.addDeployment(at[map[string]any](d))
	}
	return e.objects
}

type expansion struct {
	namespace string
	csv       map[string]any
	objects   []unstructured.Unstructured
	// serving are the Deployments that get a certificate.
	serving []string
}

// at returns a field of decoded JSON; the zero value means that it is missing.
func at[T any](of any, fields ...string) (value T) {
	for _, field := range fields {
		content, _ := of.(map[string]any)
		of = content[field]
	}
	value, _ = of.(T)
	return value
}

func (e *expansion) add(apiVersion, kind, name string, content map[string]any) {
	o := unstructured.Unstructured{Object: content}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	if !clusterScoped(kind) {
		o.SetNamespace(e.namespace)
	}
	e.objects = append(e.objects, o)
}

func clusterScoped(kind string) bool {
	return strings.HasPrefix(kind, "Cluster") || strings.HasSuffix(kind, "WebhookConfiguration") || slices.Contains([]string{"CustomResourceDefinition", "PriorityClass"}, kind)
}

func (e *expansion) addFile(o unstructured.Unstructured) {
	if !clusterScoped(o.GetKind()) {
		o.SetNamespace(e.namespace)
	}
	e.objects = append(e.objects, o)
}

func (e *expansion) addPermissions(strategy map[string]any, field, kind string) {
	for i, p := range at[[]any](strategy, field) {
		account, name := at[string](p, "serviceAccountName"), fmt.Sprintf("olm-%s-%d", field, i)
		if !slices.ContainsFunc(e.objects, func(o unstructured.Unstructured) bool {
			return o.GetKind() == "ServiceAccount" && o.GetName() == account
		}) {
			e.add("v1", "ServiceAccount", account, map[string]any{})
		}
		e.add("rbac.authorization.k8s.io/v1", kind, name, map[string]any{"rules": at[[]any](p, "rules")})
		e.add("rbac.authorization.k8s.io/v1", kind+"Binding", name, map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": e.namespace}},
		})
	}
}

func (e *expansion) addWebhooks() {
	for _, w := range at[[]any](e.csv, "spec", "webhookdefinitions") {
		deployment := at[string](w, "deploymentName")
		if !slices.Contains(e.serving, deployment) {
			e.serving = append(e.serving, deployment)
			e.add("v1", "Service", deployment+"-service", map[string]any{})
		}
		service := map[string]any{"name": deployment + "-service", "namespace": e.namespace, "path": at[string](w, "webhookPath"), "port": at[float64](w, "containerPort")}
		if at[string](w, "type") == "ConversionWebhook" {
			e.convert(w, service)
			continue
		}
		webhook := map[string]any{"name": at[string](w, "generateName"), "clientConfig": map[string]any{"service": service}}
		for _, field := range []string{"rules", "failurePolicy", "matchPolicy", "objectSelector", "sideEffects", "timeoutSeconds", "admissionReviewVersions", "reinvocationPolicy"} {
			if value := at[any](w, field); value != nil {
				webhook[field] = value
			}
		}
		kind := strings.Replace(at[string](w, "type"), "AdmissionWebhook", "WebhookConfiguration", 1)
		e.add("admissionregistration.k8s.io/v1", kind, at[string](w, "generateName"), map[string]any{"webhooks": []any{webhook}})
	}
}

// convert overwrites the conversion of CRDs.
func (e *expansion) convert(w any, service map[string]any) {
	for _, name := range at[[]any](w, "conversionCRDs") {
		for _, o := range e.objects {
			if o.GetKind() == "CustomResourceDefinition" && o.GetName() == name {
				at[map[string]any](o.Object, "spec")["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
					"clientConfig": map[string]any{"service": service}, "conversionReviewVersions": at[any](w, "admissionReviewVersions"),
				}}
			}
		}
	}
}

// addDeployment makes a Deployment, and mounts the certificate twice, as OLM does.
func (e *expansion) addDeployment(d map[string]any) {
	name := at[string](d, "name")
	if slices.Contains(e.serving, name) {
		pod := at[map[string]any](d, "spec", "template", "spec")
		for _, volume := range [][2]string{{"apiservice-cert", "/apiserver.local.config/certificates"}, {"webhook-cert", "/tmp/k8s-webhook-server/serving-certs"}} {
			pod["volumes"] = append(at[[]any](pod, "volumes"), map[string]any{"name": volume[0], "secret": map[string]any{"secretName": name + "-service-cert"}})
			for _, c := range at[[]any](pod, "containers") {
				c := at[map[string]any](c)
				c["volumeMounts"] = append(at[[]any](c, "volumeMounts"), map[string]any{"name": volume[0], "mountPath": volume[1]})
			}
		}
	}
	content := map[string]any{"spec": d["spec"]}
	if labels := at[map[string]any](d, "label"); labels != nil {
		content["metadata"] = map[string]any{"labels": labels}
	}
	e.add("apps/v1", "Deployment", name, content)
}

// facts returns everything that objects say, each as a line: the fields of objects, and the rights of
// subjects instead of roles and bindings, because the names of roles that somebody is bound to mean nothing.
func facts(t *testing.T, objects []unstructured.Unstructured) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	bound := rights(t, objects, all)
	for _, o := range objects {
		if strings.HasSuffix(o.GetKind(), "Binding") || bound[o.GetKind()+"/"+o.GetName()] {
			continue
		}
		flatten(t, o.GetKind()+" "+o.GetName(), o.Object, all)
	}
	return all
}

// rights adds a line for each rule that a subject has, and returns the roles with these rules.
func rights(t *testing.T, objects []unstructured.Unstructured, all map[string]bool) (bound map[string]bool) {
	t.Helper()
	bound = map[string]bool{}
	for _, b := range objects {
		if !strings.HasSuffix(b.GetKind(), "Binding") {
			continue
		}
		role := at[string](b.Object, "roleRef", "kind") + "/" + at[string](b.Object, "roleRef", "name")
		bound[role] = true
		rules := []any{"everything that " + role + " has"}
		for _, r := range objects {
			if r.GetKind()+"/"+r.GetName() == role && r.Object["aggregationRule"] == nil {
				rules = at[[]any](r.Object, "rules")
			}
		}
		for _, subject := range at[[]any](b.Object, "subjects") {
			for _, rule := range rules {
				all[fmt.Sprintf("%s %s may, by a %s: %s", at[string](subject, "kind"), at[string](subject, "name"), b.GetKind(), asJSON(t, rule))] = true
			}
		}
	}
	return bound
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// flatten adds a line for each value in a part of an object. Items of lists have their names, or else
// no position, so that one item more changes one line.
func flatten(t *testing.T, path string, part any, all map[string]bool) {
	t.Helper()
	switch part := part.(type) {
	case map[string]any:
		if len(part) == 0 {
			all[path+" {}"] = true
		}
		for field, value := range part {
			flatten(t, path+"."+field, value, all)
		}
	case []any:
		for _, item := range part {
			name := at[string](item, "name")
			flatten(t, path+"["+name+"]", item, all)
		}
	default:
		all[path+" = "+asJSON(t, part)] = true
	}
}
