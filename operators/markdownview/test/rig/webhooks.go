package rig

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// webhooks configures the API server to call the manager at a URL, because the manager is not a
// Pod and has no Service.
type webhooks struct {
	dir  string // directory of tls.crt and tls.key
	port int
	ca   []byte
}

func newWebhooks(dir, address string) (*webhooks, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	w := &webhooks{dir: filepath.Join(dir, "webhooks")}
	if w.port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	if err := w.certify(); err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	return w, nil
}

// certify creates a self-signed certificate.
func (w *webhooks) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rig"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	w.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(w.dir, "tls.crt"), w.ca, 0o600),
		os.WriteFile(filepath.Join(w.dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}

// install creates the shipped configurations with the address of the manager.
func (w *webhooks) install(ctx context.Context, c client.Client) error {
	path, err := FromRoot("config", "webhook", "manifests.yaml")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the webhooks: %w", err)
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = w.create(ctx, c, document)
		}
		if err != nil {
			return fmt.Errorf("installing the webhooks: %w", err)
		}
	}
}

func (w *webhooks) create(ctx context.Context, c client.Client, document []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "MutatingWebhookConfiguration":
		var configuration admissionv1.MutatingWebhookConfiguration
		if err := yaml.Unmarshal(document, &configuration); err != nil {
			return err
		}
		for i := range configuration.Webhooks {
			w.direct(&configuration.Webhooks[i].ClientConfig)
		}
		return c.Create(ctx, &configuration)
	case "ValidatingWebhookConfiguration":
		var configuration admissionv1.ValidatingWebhookConfiguration
		if err := yaml.Unmarshal(document, &configuration); err != nil {
			return err
		}
		for i := range configuration.Webhooks {
			w.direct(&configuration.Webhooks[i].ClientConfig)
		}
		return c.Create(ctx, &configuration)
	case "":
		return nil // an empty document
	default:
		return fmt.Errorf("%s is not a webhook configuration", kind.Kind)
	}
}

func (w *webhooks) direct(c *admissionv1.WebhookClientConfig) {
	url := fmt.Sprintf("https://127.0.0.1:%d%s", w.port, *c.Service.Path)
	*c = admissionv1.WebhookClientConfig{URL: &url, CABundle: w.ca}
}
