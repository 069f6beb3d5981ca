/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package certificates

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Options names the objects that belong to the certificate. The zero value means that the manager
// makes no certificate.
type Options struct {
	secret, service, configurations string

	// These are parsed from the above.
	key     types.NamespacedName
	targets []target
}

// Bind adds the flags. koboshi ship --certificates self-signed sets them.
func (o *Options) Bind(f *flag.FlagSet) {
	f.StringVar(&o.secret, "webhook-self-signed-secret", "",
		"The Secret, as NAMESPACE/NAME, in which the manager keeps a self-signed certificate for the webhooks. "+
			"The Secret must exist, and may be empty. If no Secret is given, the manager makes no certificate.")
	f.StringVar(&o.service, "webhook-service", "",
		"The Service of the webhooks, in the namespace of --webhook-self-signed-secret.")
	f.StringVar(&o.configurations, "webhook-configurations", "",
		"The objects into which the manager writes the certificate in --webhook-self-signed-secret, separated by commas: "+
			"mutating/NAME, validating/NAME, or conversion/NAME for a CustomResourceDefinition.")
}

// Enabled reports whether the manager makes the certificate itself.
func (o *Options) Enabled() bool { return o.secret != "" }

// host returns the name by which the API server calls the webhooks.
func (o *Options) host() string { return o.service + "." + o.key.Namespace + ".svc" }

// parse checks the flags.
func (o *Options) parse() error {
	namespace, name, ok := strings.Cut(o.secret, "/")
	if !ok || namespace == "" || name == "" {
		return fmt.Errorf("--webhook-self-signed-secret=%s: write it as NAMESPACE/NAME", o.secret)
	}
	if o.service == "" {
		return errors.New("--webhook-self-signed-secret needs --webhook-service: name the Service of the webhooks")
	}
	o.key, o.targets = types.NamespacedName{Namespace: namespace, Name: name}, nil
	for _, text := range strings.Split(o.configurations, ",") {
		kind, name, _ := strings.Cut(text, "/")
		gvk, ok := kinds[kind]
		if !ok || name == "" {
			return fmt.Errorf("--webhook-configurations: %q is none of mutating/NAME, validating/NAME and conversion/NAME", text)
		}
		o.targets = append(o.targets, target{gvk, name})
	}
	return nil
}

// kinds has the kinds of objects by which the API server knows webhooks.
var kinds = map[string]schema.GroupVersionKind{
	"mutating":   {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	"validating": {Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	"conversion": {Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
}

// A target is an object by which the API server knows webhooks.
type target struct {
	kind schema.GroupVersionKind
	name string
}

func (t target) String() string { return "the " + t.kind.Kind + " " + t.name }

// empty returns an object into which the target can be read.
func (t target) empty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(t.kind)
	return object
}

// setAuthorities makes the webhooks of a Service trust certificates, in an object of one of the
// kinds, and reports whether this changes the object.
func setAuthorities(object map[string]any, namespace, service string, authorities []byte) (changed bool) {
	text := base64.StdEncoding.EncodeToString(authorities)
	for _, config := range clientConfigs(object) {
		of, _ := config["service"].(map[string]any)
		if of["name"] == service && of["namespace"] == namespace && config["caBundle"] != text {
			config["caBundle"] = text
			changed = true
		}
	}
	return changed
}

// clientConfigs returns the parts of an object that say how to call a webhook.
func clientConfigs(object map[string]any) (all []map[string]any) {
	webhooks, _, _ := unstructured.NestedFieldNoCopy(object, "webhooks")
	list, _ := webhooks.([]any)
	if conversion, ok, _ := unstructured.NestedFieldNoCopy(object, "spec", "conversion", "webhook"); ok {
		list = append(list, conversion)
	}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		if config, ok := fields["clientConfig"].(map[string]any); ok {
			all = append(all, config)
		}
	}
	return all
}
