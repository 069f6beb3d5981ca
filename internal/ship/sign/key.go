// Package sign signs images and documents about them with a private key, in the format of cosign.
//
//	digest ────▶ payload ───▶ signature ─┐
//	                                     ├──▶ layers of an image that has a tag made from the digest
//	document ──▶ statement ──▶ envelope ─┘
//
// There is no certificate, and no entry in a transparency log. So an image is verified with the public key,
// and cosign needs the flag --insecure-ignore-tlog.
package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// Key is a private key.
type Key struct {
	signer crypto.Signer
}

// encryptedTypes are the types of PEM blocks in which cosign writes keys; the second is that of its
// first versions.
var encryptedTypes = []string{"ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY"}

// ReadKey reads a private key from a file: one in cosign's format, for which it asks for the password,
// or an ECDSA, Ed25519 or RSA key in PEM that is not encrypted. Errors contain no part of the file.
func ReadKey(file string, password func() ([]byte, error)) (*Key, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w; create one with cosign generate-key-pair", err)
	}
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		return nil, fmt.Errorf("%s is not a key in PEM; name the file cosign.key, which cosign generate-key-pair creates", file)
	case slices.Contains(encryptedTypes, block.Type):
		return openKey(file, block.Bytes, password)
	}
	return parseKey(file, block.Type, block.Bytes)
}

// openKey decrypts a key in cosign's format.
func openKey(file string, content []byte, password func() ([]byte, error)) (*Key, error) {
	if !json.Valid(content) {
		return nil, damaged(file)
	}
	secret, err := password()
	if err != nil {
		return nil, fmt.Errorf("the key %s is encrypted: %w", file, err)
	}
	// The library checks the parameters of scrypt, so that a file cannot make it use much memory.
	plain, err := encrypted.Decrypt(content, secret)
	if err != nil {
		return nil, fmt.Errorf("the password does not open the key %s, or the file is damaged; check COSIGN_PASSWORD", file)
	}
	return parseKey(file, "PRIVATE KEY", plain)
}

// parseKey parses a key that is not encrypted.
func parseKey(file, kind string, content []byte) (*Key, error) {
	var key any
	var err error
	switch kind {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(content)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(content)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(content)
	case "PUBLIC KEY":
		return nil, fmt.Errorf("%s is a public key; name the private key that belongs to it, such as cosign.key", file)
	default:
		return nil, fmt.Errorf("%s is a %s, and not a private key of cosign; convert it with cosign import-key-pair --key %s", file, kind, file)
	}
	if err != nil {
		return nil, damaged(file)
	}
	signer, ok := key.(crypto.Signer)
	if !ok || !usable(signer) {
		return nil, fmt.Errorf("the key %s is of a kind with which cosign does not sign; create one with cosign generate-key-pair", file)
	}
	return &Key{signer}, nil
}

// usable reports whether cosign accepts signatures of a key.
func usable(key crypto.Signer) bool {
	switch key := key.(type) {
	case ed25519.PrivateKey, *ecdsa.PrivateKey:
		return true
	case *rsa.PrivateKey:
		return key.N.BitLen() >= 2048
	}
	return false
}

func damaged(file string) error {
	return errors.New("the key " + file + " is damaged; restore it, or create another one with cosign generate-key-pair")
}

// sign returns the signature of a message. The same message always has the same signature.
func (k *Key) sign(message []byte) ([]byte, error) {
	if key, ok := k.signer.(ed25519.PrivateKey); ok {
		return ed25519.Sign(key, message), nil
	}
	digest := sha256.Sum256(message)
	// Without a source of random numbers, ECDSA signs as RFC 6979 describes.
	return k.signer.Sign(nil, digest[:], crypto.SHA256)
}
