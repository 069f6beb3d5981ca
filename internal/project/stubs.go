package project

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// stubValue is the value of each key of a Secret or ConfigMap that is made up.
const stubValue = "koboshi"

// addStubs adds the Secrets and ConfigMaps that the options request. Each has the keys that
// the option names, or else the keys that the controller's Pod uses.
func (p *Project) addStubs(parts *parts, id subject.ServiceAccount) error {
	for _, stubs := range []struct {
		flag, kind string
		entries    []string
	}{
		{flagStubSecret, "Secret", p.options.StubSecrets},
		{flagStubConfigMap, "ConfigMap", p.options.StubConfigMaps},
	} {
		for _, entry := range stubs.entries {
			d, err := p.stub(stubs.kind, entry, id)
			if err != nil {
				return fmt.Errorf("%s %s: %w", stubs.flag, entry, err)
			}
			parts.install = append(parts.install, d)
		}
	}
	return nil
}

func (p *Project) stub(kind, entry string, id subject.ServiceAccount) (document, error) {
	at, list, _ := strings.Cut(entry, "=")
	namespace, name, ok := strings.Cut(at, "/")
	if !ok {
		namespace, name = id.Namespace, at
	}
	keys := strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
	if len(keys) == 0 && p.manager != nil {
		keys = p.manager.keysOf(kind, name)
	}
	if name == "" || namespace == "" || len(keys) == 0 {
		return document{}, fmt.Errorf("the name or the keys are missing; write NAMESPACE/NAME=KEY,KEY")
	}
	values := map[string]any{}
	for _, key := range keys {
		values[key] = stubValue
	}
	d := document{File: "made up", Object: object("v1", kind, namespace, name)}
	if kind == "ConfigMap" {
		d.Object.Object["data"] = values
		return d, nil
	}
	if slices.Contains(keys, corev1.TLSCertKey) && slices.Contains(keys, corev1.TLSPrivateKeyKey) {
		if err := certificate(values); err != nil {
			return d, err
		}
		d.Object.Object["type"] = string(corev1.SecretTypeTLS)
	}
	d.Object.Object["stringData"] = values
	return d, nil
}

// certificate gives the keys of a TLS Secret values that a server accepts.
func certificate(values map[string]any) error {
	ca, err := pki.New("koboshi check: authority of a made-up Secret")
	if err != nil {
		return err
	}
	certPEM, keyPEM, err := ca.Issue(pki.Request{CommonName: "koboshi check", Server: true, Names: []string{"localhost"}})
	if err != nil {
		return err
	}
	values[corev1.TLSCertKey], values[corev1.TLSPrivateKeyKey] = string(certPEM), string(keyPEM)
	if _, ok := values[corev1.ServiceAccountRootCAKey]; ok {
		values[corev1.ServiceAccountRootCAKey] = string(ca.CertPEM())
	}
	return nil
}

// keysOf returns those keys of a Secret or ConfigMap that the controller's Pod uses.
func (m *manager) keysOf(kind, name string) (keys []string) {
	add := func(of, key string) {
		if of == name && key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	addItems := func(of string, items []corev1.KeyToPath) {
		for _, item := range items {
			add(of, item.Key)
		}
	}
	for _, e := range m.container.Env {
		switch {
		case e.ValueFrom == nil:
		case kind == "Secret" && e.ValueFrom.SecretKeyRef != nil:
			add(e.ValueFrom.SecretKeyRef.Name, e.ValueFrom.SecretKeyRef.Key)
		case kind == "ConfigMap" && e.ValueFrom.ConfigMapKeyRef != nil:
			add(e.ValueFrom.ConfigMapKeyRef.Name, e.ValueFrom.ConfigMapKeyRef.Key)
		}
	}
	for _, v := range m.template.Spec.Volumes {
		switch {
		case kind == "Secret" && v.Secret != nil:
			addItems(v.Secret.SecretName, v.Secret.Items)
		case kind == "ConfigMap" && v.ConfigMap != nil:
			addItems(v.ConfigMap.Name, v.ConfigMap.Items)
		case v.Projected != nil:
			for _, source := range v.Projected.Sources {
				switch {
				case kind == "Secret" && source.Secret != nil:
					addItems(source.Secret.Name, source.Secret.Items)
				case kind == "ConfigMap" && source.ConfigMap != nil:
					addItems(source.ConfigMap.Name, source.ConfigMap.Items)
				}
			}
		}
	}
	return keys
}
