package project_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/project"
)

const selfSigned = `apiVersion: v1
kind: Secret
metadata: {name: webhook-server-cert, namespace: harbour}
---
apiVersion: v1
kind: Secret
metadata: {name: client-cert, namespace: harbour}
stringData: {tls.crt: known}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: pilot, namespace: harbour}
spec:
  template:
    spec:
      containers:
      - {name: manager, image: pilot:v1, volumeMounts: [{name: a, mountPath: /certs}, {name: b, mountPath: /client}]}
      volumes: [{name: a, secret: {secretName: webhook-server-cert}}, {name: b, secret: {secretName: client-cert}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: pilot}
webhooks:
- name: pilot.sea.example.com
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: pilot, namespace: harbour, path: /validate}}
`

func TestAnEmptySecretForACertificateIsFilledByTheLab(t *testing.T) {
	p, told, err := fromManifests(t, selfSigned+"---\n"+otherCRD, project.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/certs"}, p.Subject.Webhook.Mounts); diff != "" {
		t.Errorf("-want +got:\n%s\n%v", diff, *told)
	}
	if len(p.Subject.Files) != 1 || p.Subject.Files[0].Path != "/client" {
		t.Errorf("files: %v", p.Subject.Files)
	}
}
