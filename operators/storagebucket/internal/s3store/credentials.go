package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Credentials are a static S3 key pair. They print as "[redacted]" whatever
// the verb or the encoder.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	// SessionToken comes with temporary keys; empty for others.
	SessionToken string
}

var _ aws.CredentialsProvider = Credentials{}

const redacted = "[redacted]"

// Format keeps the key pair out of every fmt verb, %#v and %+v included.
func (Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText keeps the key pair out of JSON and structured logs.
func (Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Retrieve hands the key pair to the signer.
func (c Credentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID:     c.AccessKeyID,
		SecretAccessKey: c.SecretAccessKey,
		SessionToken:    c.SessionToken,
	}, nil
}

// errNoCredentials stands for whatever a provider fails with: the cause may
// hold answers of a token service.
var errNoCredentials = errors.New("there are no credentials to sign with")

// guarded keeps a provider's failure apart from one of the store. It is a
// function, so that it prints as nothing but an address wherever it is kept.
func guarded(provider aws.CredentialsProvider) aws.CredentialsProviderFunc {
	return func(ctx context.Context) (aws.Credentials, error) {
		if provider == nil {
			return aws.Credentials{}, errNoCredentials
		}
		c, err := provider.Retrieve(ctx)
		switch {
		case err != nil && errors.Is(ctx.Err(), context.Canceled):
			return aws.Credentials{}, context.Canceled
		case err != nil || !c.HasKeys():
			return aws.Credentials{}, errNoCredentials
		}
		return c, nil
	}
}
