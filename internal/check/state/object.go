package state

import "strings"

// Object is an object in decoded JSON. The values of Secrets have already been replaced
// with hashes.
type Object map[string]any

// field returns a field of the metadata, or nil if there is none.
func (o Object) field(name string) any {
	metadata, _ := o["metadata"].(map[string]any)
	return metadata[name]
}

// Metadata returns a string field of the metadata, such as the UID.
func (o Object) Metadata(field string) string {
	s, _ := o.field(field).(string)
	return s
}

// Deleting reports whether the object is being deleted.
func (o Object) Deleting() bool { return o.field("deletionTimestamp") != nil }

// Generation returns the generation, or 0 if there is none.
func (o Object) Generation() float64 { return number(o.field("generation")) }

// Annotations returns the annotations.
func (o Object) Annotations() map[string]any {
	annotations, _ := o.field("annotations").(map[string]any)
	return annotations
}

// Labels returns the labels.
func (o Object) Labels() map[string]any {
	labels, _ := o.field("labels").(map[string]any)
	return labels
}

// Finalizers returns the finalizers.
func (o Object) Finalizers() []string {
	list, _ := o.field("finalizers").([]any)
	var finalizers []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			finalizers = append(finalizers, s)
		}
	}
	return finalizers
}

// Owner is one owner reference of an object.
type Owner struct {
	APIVersion, Kind, Name, UID string
	Controller                  bool
}

// Group returns the API group of the owner.
func (o Owner) Group() string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Owners returns the owner references.
func (o Object) Owners() []Owner {
	list, _ := o.field("ownerReferences").([]any)
	var owners []Owner
	for _, item := range list {
		ref, _ := item.(map[string]any)
		text := func(key string) string { s, _ := ref[key].(string); return s }
		controller, _ := ref["controller"].(bool)
		owners = append(owners, Owner{text("apiVersion"), text("kind"), text("name"), text("uid"), controller})
	}
	return owners
}

// MadeUpstream reports whether one of Kubernetes' own controllers creates and deletes the
// object, such as a Pod of a ReplicaSet or a ReplicaSet of a Deployment.
func (o Object) MadeUpstream() bool {
	for _, owner := range o.Owners() {
		if !owner.Controller {
			continue
		}
		switch owner.Kind + "." + owner.Group() {
		case "ReplicaSet.apps", "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps",
			"Job.batch", "CronJob.batch", "ReplicationController.", "Service.":
			return true
		}
	}
	return false
}
