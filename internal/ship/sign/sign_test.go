package sign_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

// fixturePassword opens testdata/cosign.key, which cosign generate-key-pair has made for these tests.
const fixturePassword = "for tests only"

var digest = v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("01", 32)}

func repository(t *testing.T) name.Repository {
	t.Helper()
	r, err := name.NewRepository("registry.example.com/team/operator")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func noPassword() ([]byte, error) { return nil, errors.New("there is no password") }

func fixed(password string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(password), nil }
}

// write writes a PEM file.
func write(t *testing.T, kind string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// writeKey writes a private key without a password.
func writeKey(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "PRIVATE KEY", der)
}

// pair is a private key with its public key.
type pair struct {
	key    *sign.Key
	public crypto.PublicKey
}

// made has the pairs of all tests, because it takes long to make and to decrypt keys.
var made = map[string]pair{}

func pairs(t *testing.T) map[string]pair {
	t.Helper()
	if len(made) == 0 {
		made = makePairs(t)
	}
	return made
}

func makePairs(t *testing.T) map[string]pair {
	t.Helper()
	text, err := os.ReadFile("testdata/cosign.pub")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	ofCosign, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(large)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]pair{
		"cosign's":     {read(t, "testdata/cosign.key"), ofCosign},
		"P-384":        {read(t, writeKey(t, large)), large.Public()},
		"P-384, SEC 1": {read(t, write(t, "EC PRIVATE KEY", sec1)), large.Public()},
		"Ed25519":      {read(t, writeKey(t, edwards)), edwards.Public()},
		"RSA":          {read(t, writeKey(t, old)), old.Public()},
		"RSA, PKCS 1":  {read(t, write(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(old))), old.Public()},
	}
}

// verified reports whether a signature, in base64, is that of the message, with the standard library
// alone.
func verified(t *testing.T, key crypto.PublicKey, message []byte, signature string) bool {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(message)
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], raw)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], raw) == nil
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, raw)
	}
	t.Fatalf("an unknown key: %T", key)
	return false
}

func read(t *testing.T, file string) *sign.Key {
	t.Helper()
	key, err := sign.ReadKey(file, fixed(fixturePassword))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// only returns the only layer of signatures, as a registry has it.
func only(t *testing.T, s sign.Signatures, err error) (v1.Descriptor, []byte) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	img, changed, err := s.AddTo(nil)
	if err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	manifest, err := img.Manifest()
	if err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Layers[0], content
}

func TestASignatureBelongsToItsKeyAndItsImage(t *testing.T) {
	all := pairs(t)
	for name, p := range all {
		s, err := p.key.Image(repository(t), digest)
		layer, payload := only(t, s, err)
		signature := layer.Annotations["dev.cosignproject.cosign/signature"]
		if !verified(t, p.public, payload, signature) {
			t.Errorf("%s: the public key does not accept %s", name, payload)
		}
		if changed := strings.Replace(string(payload), "0101", "0202", 1); verified(t, p.public, []byte(changed), signature) {
			t.Errorf("%s: the signature is that of another image, too", name)
		}
		if name != "cosign's" && verified(t, all["cosign's"].public, payload, signature) {
			t.Errorf("%s: another key accepts the signature", name)
		}
		if layer.MediaType != "application/vnd.dev.cosign.simplesigning.v1+json" || s.Tag() != "sha256-"+digest.Hex+".sig" {
			t.Errorf("%s: %+v under %s", name, layer, s.Tag())
		}
		want := `{"critical":{"identity":{"docker-reference":"registry.example.com/team/operator"},"image":{"docker-manifest-digest":"` +
			digest.String() + `"},"type":"cosign container image signature"},"optional":null}`
		if string(payload) != want {
			t.Errorf("%s: signed %s, want %s", name, payload, want)
		}
	}
}

func TestAStatementIsSignedInAnEnvelope(t *testing.T) {
	statement, err := sign.About(repository(t), digest, "https://spdx.dev/Document", []byte(`{"spdxVersion": "SPDX-2.3"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range pairs(t) {
		s, err := p.key.Statement(statement)
		layer, content := only(t, s, err)
		var envelope struct {
			PayloadType string
			Payload     []byte
			Signatures  []struct{ Sig string }
		}
		if err := json.Unmarshal(content, &envelope); err != nil || len(envelope.Signatures) != 1 {
			t.Fatalf("%s: %s, %v", name, content, err)
		}
		// This is the definition of DSSE's pre-authentication encoding.
		message := fmt.Sprintf("DSSEv1 %d %s %d %s", len(envelope.PayloadType), envelope.PayloadType, len(envelope.Payload), envelope.Payload)
		if !verified(t, p.public, []byte(message), envelope.Signatures[0].Sig) {
			t.Errorf("%s: the public key does not accept %s", name, content)
		}
		var text struct {
			Subject   []struct{ Digest map[string]string }
			Predicate struct{ SPDXVersion string }
		}
		if err := json.Unmarshal(envelope.Payload, &text); err != nil || text.Subject[0].Digest["sha256"] != digest.Hex || text.Predicate.SPDXVersion != "SPDX-2.3" {
			t.Errorf("%s: %s, %v", name, envelope.Payload, err)
		}
		if layer.Annotations["predicateType"] != "https://spdx.dev/Document" || s.Tag() != "sha256-"+digest.Hex+".att" {
			t.Errorf("%s: %+v under %s", name, layer, s.Tag())
		}
	}
}

func TestTheSameImageHasTheSameSignature(t *testing.T) {
	for name, p := range pairs(t) {
		first, err := p.key.Image(repository(t), digest)
		one, _ := only(t, first, err)
		again, err := p.key.Image(repository(t), digest)
		two, _ := only(t, again, err)
		if one.Annotations["dev.cosignproject.cosign/signature"] != two.Annotations["dev.cosignproject.cosign/signature"] {
			t.Errorf("%s: two signatures", name)
		}
	}
}

func TestSignaturesOfOtherKeysStay(t *testing.T) {
	all := pairs(t)
	var img v1.Image
	for i, name := range []string{"RSA", "cosign's", "Ed25519", "cosign's", "RSA"} {
		s, err := all[name].key.Image(repository(t), digest)
		if err != nil {
			t.Fatal(err)
		}
		next, changed, err := s.AddTo(img)
		if err != nil || changed != (i < 3) {
			t.Fatalf("signature %d: changed %v, %v", i, changed, err)
		}
		img = next
	}
	manifest, err := img.Manifest()
	if err != nil || len(manifest.Layers) != 3 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	for _, layer := range manifest.Layers {
		if layer.Annotations["dev.cosignproject.cosign/signature"] == "" {
			t.Errorf("a signature is lost: %+v", layer)
		}
	}
}

func TestAKeyThatCannotBeUsedIsExplained(t *testing.T) {
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/cosign.key")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	other := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(other, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(block.Bytes), `"N":65536`, `"N":1073741824`, 1)
	if changed == string(block.Bytes) {
		t.Fatalf("the key has other parameters: %s", block.Bytes)
	}
	for name, c := range map[string]struct {
		file     string
		password func() ([]byte, error)
		want     string
	}{
		"a wrong password":    {"testdata/cosign.key", fixed("a wrong secret"), "check COSIGN_PASSWORD"},
		"no password":         {"testdata/cosign.key", noPassword, "is encrypted: there is no password"},
		"half of the key":     {write(t, block.Type, block.Bytes[:len(block.Bytes)/2]), fixed(fixturePassword), "is damaged; restore it"},
		"a costly key":        {write(t, block.Type, []byte(changed)), fixed(fixturePassword), "or the file is damaged"},
		"the public key":      {"testdata/cosign.pub", noPassword, "is a public key; name the private key"},
		"no PEM":              {other, noPassword, "name the file cosign.key"},
		"no file":             {filepath.Join(t.TempDir(), "cosign.key"), noPassword, "create one with cosign generate-key-pair"},
		"a small RSA key":     {writeKey(t, small), noPassword, "of a kind with which cosign does not sign"},
		"a damaged plain key": {write(t, "PRIVATE KEY", []byte("garbage")), noPassword, "is damaged; restore it"},
		"an encrypted PKCS 8": {write(t, "ENCRYPTED PRIVATE KEY", []byte("content")), noPassword, "convert it with cosign import-key-pair"},
	} {
		_, err := sign.ReadKey(c.file, c.password)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, secret := range []string{fixturePassword, "a wrong secret", "ciphertext", "garbage"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error has %q: %v", name, secret, err)
			}
		}
	}
}
