package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// An observation is a request that had a different result under the new CRD.
type observation struct {
	Effect

	kind    kind
	version string
	path    path
	message string
}

// A kind groups observations by what the old client lost.
type kind string

const (
	refused   kind = "refused"    // a request is refused
	lost      kind = "lost"       // content is missing
	differs   kind = "changed"    // content is different
	notServed kind = "not-served" // the version is not served
)

// stored is an object that was stored under the old CRD.
type stored struct {
	draft

	name    string
	version string
	// reads holds the content of the object by the version in which it was read.
	reads map[string]map[string]any
	// follower is an object to whose content this object could be updated under the old CRD.
	follower *stored
}

// experiment uses the objects of one CRD under its old and its new version.
type experiment struct {
	*server

	pair         *pair
	in           Input
	report       *Report
	oldCRD       *apiextensionsv1.CustomResourceDefinition
	newCRD       *apiextensionsv1.CustomResourceDefinition
	webhook      bool     // a webhook converts the objects
	versions     []string // the versions in which objects are stored and read
	stored       []*stored
	seen         map[string]bool // the objects that were tried, as JSON
	observations []observation
	failed       error // a request that the API server did not answer
}

// answered reports whether an error is the API server's answer. Everything else, such as a lost
// connection, ends the experiment, because it says nothing about the object.
func (e *experiment) answered(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return true
	}
	if e.failed == nil {
		e.failed = err
	}
	return false
}

// run stores objects under the old CRD, installs the new one, and uses the objects.
func (e *experiment) run(ctx context.Context) error {
	e.prepare()
	objection, err := e.install(ctx, e.oldCRD, "old")
	if err != nil {
		return err
	}
	if objection != nil {
		e.unchecked("the API server refuses the old CRD, so no objects were tried: %v", objection)
		return nil
	}
	for _, version := range e.versions {
		e.store(ctx, version)
	}
	e.follow(ctx)
	e.report.Objects += len(e.stored)
	if objection, err = e.install(ctx, e.newCRD, "new"); err != nil {
		return err
	}
	if objection != nil {
		e.objected(objection)
		return nil
	}
	for _, object := range e.stored {
		e.use(ctx, object)
	}
	return cmp.Or(ctx.Err(), e.failed)
}

func (e *experiment) unchecked(format string, args ...any) {
	e.report.Unchecked = append(e.report.Unchecked, e.pair.new.CRD.Name+": "+fmt.Sprintf(format, args...))
}

// prepare decides what is tried. The plane cannot call a conversion webhook, so only the
// version in which objects are stored is tried for a CRD that has one.
func (e *experiment) prepare() {
	e.seen = map[string]bool{}
	e.oldCRD, e.newCRD = e.pair.old.CRD.DeepCopy(), e.pair.new.CRD.DeepCopy()
	e.webhook = e.in.Webhooks[e.oldCRD.Name] || strategy(e.oldCRD) == apiextensionsv1.WebhookConverter || strategy(e.newCRD) == apiextensionsv1.WebhookConverter
	storage := storageVersion(e.oldCRD)
	for _, v := range e.oldCRD.Spec.Versions {
		if v.Served && (!e.webhook || v.Name == storage) {
			e.versions = append(e.versions, v.Name)
		}
	}
	if !e.webhook {
		return
	}
	e.oldCRD.Spec.Conversion, e.newCRD.Spec.Conversion = nil, nil
	if len(e.oldCRD.Spec.Versions)+len(e.newCRD.Spec.Versions) == 2 {
		return
	}
	e.unchecked("the conversion webhook was not called, and only objects in version %s were tried; test the conversion functions, and run koboshi check", storage)
	if versionOf(e.newCRD, storage) == nil {
		return
	}
	for i := range e.newCRD.Spec.Versions {
		e.newCRD.Spec.Versions[i].Storage = e.newCRD.Spec.Versions[i].Name == storage
	}
}

// objected records that the API server refuses the new CRD.
func (e *experiment) objected(objection error) {
	for _, cause := range causes(objection) {
		e.observations = append(e.observations, observation{
			kind: refused, message: cause.message,
			Effect: Effect{Action: "update of the CRD", Message: "refused: " + cause.message, Origin: e.pair.new.File},
		})
	}
}

// store stores objects in a version under the old CRD. An object that the API server refuses
// is left out, because no client can have it.
func (e *experiment) store(ctx context.Context, version string) {
	var changes []change
	for _, c := range e.pair.changes {
		if c.Version == version {
			changes = append(changes, c)
		}
	}
	samples := e.samples(version)
	d := draw(versionOf(e.oldCRD, version), versionOf(e.newCRD, version), samples, changes)
	if !d.complete {
		e.unchecked("so many fields of %s changed that not all values were tried; compare with a closer revision", version)
	}
	for i, base := range d.bases {
		if !e.create(ctx, version, base) && i < len(samples) {
			e.unchecked("the old CRD does not accept the sample in %s, so it was not tried; correct the sample", base.origin)
		}
	}
	for _, group := range d.variants {
		for _, variant := range group {
			if e.create(ctx, version, variant) {
				break
			}
		}
	}
}

func (e *experiment) samples(version string) (all []draft) {
	for _, sample := range e.in.Samples {
		kind := sample.Object.GroupVersionKind()
		if kind.Group == e.oldCRD.Spec.Group && kind.Kind == e.oldCRD.Spec.Names.Kind && kind.Version == version {
			all = append(all, draft{origin: sample.File, content: copyOf(contentOf(sample.Object.Object))})
		}
	}
	return all
}

// create stores an object under the old CRD, and reports whether it is stored.
func (e *experiment) create(ctx context.Context, version string, d draft) bool {
	data, err := json.Marshal(d.content)
	key := version + string(data)
	if err != nil || e.seen[key] {
		return err == nil
	}
	e.seen[key] = true
	o := &stored{draft: d, version: version, name: fmt.Sprintf("object-%s-%d", version, len(e.stored)+1), reads: map[string]map[string]any{}}
	client := e.resource(e.oldCRD, version)
	now, err := client.Create(ctx, e.manifest(e.oldCRD, version, o.name, d.content), metav1.CreateOptions{})
	if err != nil {
		_ = e.answered(err)
		return false
	}
	if status, ok := d.content["status"]; ok && hasStatus(versionOf(e.oldCRD, version)) {
		now.Object["status"] = copyOf(status)
		if _, err := client.UpdateStatus(ctx, now, metav1.UpdateOptions{}); err != nil {
			_ = client.Delete(ctx, o.name, metav1.DeleteOptions{})
			return false
		}
	}
	for _, version := range e.versions {
		if now, err := e.resource(e.oldCRD, version).Get(ctx, o.name, metav1.GetOptions{}); err == nil {
			o.reads[version] = contentOf(now.Object)
		}
	}
	e.stored = append(e.stored, o)
	return true
}

func hasStatus(v *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v != nil && v.Subresources != nil && v.Subresources.Status != nil
}

func (e *experiment) manifest(crd *apiextensionsv1.CustomResourceDefinition, version, name string, content map[string]any) *unstructured.Unstructured {
	object := maps.Clone(copyOf(content))
	object["apiVersion"], object["kind"] = crd.Spec.Group+"/"+version, crd.Spec.Names.Kind
	object["metadata"] = map[string]any{"name": name}
	return &unstructured.Unstructured{Object: object}
}

// follow records which updates from one object to the next the old CRD allows.
func (e *experiment) follow(ctx context.Context) {
	for i, o := range e.stored[:max(0, len(e.stored)-1)] {
		next := e.stored[i+1]
		if next.version == o.version && e.replace(ctx, e.oldCRD, o, next) == nil {
			o.follower = next
		}
	}
}

// replace updates an object to the content of another one. Nothing is stored.
func (e *experiment) replace(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, o, next *stored) error {
	client := e.resource(crd, o.version)
	now, err := client.Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	updated := e.manifest(crd, o.version, o.name, next.content)
	updated.SetResourceVersion(now.GetResourceVersion())
	_, err = client.Update(ctx, updated, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// use sends the requests that clients send for an object, under the new CRD.
func (e *experiment) use(ctx context.Context, o *stored) {
	before := len(e.observations)
	e.compareReads(ctx, o, "read", o.name)
	if now := versionOf(e.newCRD, o.version); now == nil || !now.Served {
		return // the reads have shown this
	}
	readable := len(e.observations) == before
	client := e.resource(e.newCRD, o.version)
	e.updateStatus(ctx, client, o)
	created := e.recreate(ctx, client, o)
	if o.follower != nil && created {
		if err := e.replace(ctx, e.newCRD, o, o.follower); err != nil && !e.refusedAlready(ctx, o.follower) {
			e.refuse(o, "change of a field", err)
		}
	}
	e.update(ctx, client, o, "update", readable)
	if readable && len(e.observations) == before {
		e.throughNewVersions(ctx, o)
	}
}

// refusedAlready reports whether the new CRD refuses the content itself, so that the refusal of a
// change to this content proves nothing about the change.
func (e *experiment) refusedAlready(ctx context.Context, o *stored) bool {
	_, err := e.resource(e.newCRD, o.version).Create(ctx, e.manifest(e.newCRD, o.version, o.name+"-try", o.content), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err != nil
}

// compareReads reads an object in all old versions.
func (e *experiment) compareReads(ctx context.Context, o *stored, action, name string) {
	for _, version := range e.versions {
		was, ok := o.reads[version]
		if !ok {
			continue
		}
		now, err := e.resource(e.newCRD, version).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			if action == "read" {
				e.notRead(o, version, action, err)
			}
			continue
		}
		was, is := maps.Clone(was), contentOf(now.Object)
		if action == "create" && hasStatus(versionOf(e.oldCRD, o.version)) {
			delete(was, "status")
			delete(is, "status")
		}
		schema := rootOf(versionOf(e.oldCRD, version))
		for _, d := range difference(nil, schema, was, is) {
			e.observe(o, observation{kind: d.kind, version: version, path: d.path, message: d.message}, action, d.message)
		}
	}
}

func (e *experiment) notRead(o *stored, version, action string, err error) {
	if !e.answered(err) {
		return
	}
	k := refused
	if apierrors.IsNotFound(err) {
		k = notServed
	}
	e.observe(o, observation{kind: k, version: version, message: err.Error()}, action, err.Error())
}

func (e *experiment) observe(o *stored, seen observation, action, message string) {
	seen.Effect = Effect{
		Action: action, Message: message, Origin: o.origin,
		Object: e.manifest(e.oldCRD, o.version, o.name, o.content).Object,
	}
	e.observations = append(e.observations, seen)
}

// refuse records that the API server refused a request, with one observation for each field.
func (e *experiment) refuse(o *stored, action string, err error) {
	if !e.answered(err) {
		return
	}
	for _, cause := range causes(err) {
		e.observe(o, observation{kind: refused, version: o.version, path: cause.path, message: cause.message}, action, "refused: "+cause.message)
	}
}

// updateStatus writes the status that is stored, as a controller does.
func (e *experiment) updateStatus(ctx context.Context, client dynamic.ResourceInterface, o *stored) {
	if _, ok := o.reads[o.version]["status"]; !ok || !hasStatus(versionOf(e.oldCRD, o.version)) {
		return
	}
	now, err := client.Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return // compareReads has reported this
	}
	if now.Object["status"] == nil {
		now.Object["status"] = copyOf(o.reads[o.version]["status"])
	}
	if _, err := client.UpdateStatus(ctx, now, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		if apierrors.IsNotFound(err) {
			e.observe(o, observation{kind: refused, version: o.version, path: path{"status"}, message: err.Error()}, "update of the status", "refused: "+err.Error())
			return
		}
		e.refuse(o, "update of the status", err)
	}
}

// recreate creates the manifest of an object again, as its user does in another cluster. It
// reports whether the API server accepts it.
func (e *experiment) recreate(ctx context.Context, client dynamic.ResourceInterface, o *stored) bool {
	name := o.name + "-again"
	if _, err := client.Create(ctx, e.manifest(e.newCRD, o.version, name, o.content), metav1.CreateOptions{}); err != nil {
		e.refuse(o, "create", err)
		return false
	}
	e.compareReads(ctx, o, "create", name)
	return true
}

// update changes only an annotation of an object, and compares what is stored.
func (e *experiment) update(ctx context.Context, client dynamic.ResourceInterface, o *stored, action string, readable bool) {
	now, err := client.Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return // compareReads has reported this
	}
	now.SetAnnotations(map[string]string{"koboshi.dev/action": "update"})
	if _, err := client.Update(ctx, now, metav1.UpdateOptions{}); err != nil {
		e.refuse(o, action, err)
		return
	}
	if readable {
		e.compareReads(ctx, o, action, o.name)
	}
}

// throughNewVersions reads and writes an object in each version that is new, and compares what
// old clients read afterwards.
func (e *experiment) throughNewVersions(ctx context.Context, o *stored) {
	for _, v := range e.newCRD.Spec.Versions {
		if !v.Served || versionOf(e.oldCRD, v.Name) != nil || e.webhook {
			continue
		}
		e.update(ctx, e.resource(e.newCRD, v.Name), o, "update through "+v.Name, true)
	}
}

// A cause is the API server's objection to one field.
type cause struct {
	path    path
	message string
}

// causes splits an error of the API server by field.
func causes(err error) (all []cause) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			at := parsePath(c.Field)
			text := c.Message
			if len(at) > 0 {
				text = c.Field + ": " + text
			}
			all = append(all, cause{at, text})
		}
	}
	if len(all) == 0 {
		return []cause{{message: err.Error()}}
	}
	return slices.CompactFunc(all, func(a, b cause) bool { return a.message == b.message })
}
