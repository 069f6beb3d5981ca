package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Credentials are a static S3 key pair. Credentials are printed as "[redacted]" with every fmt verb
// and encoder.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
	// SessionToken is the token of temporary keys; empty for permanent keys.
	SessionToken string
}

var _ aws.CredentialsProvider = Credentials{}

const redacted = "[redacted]"

// Format keeps the key pair out of every fmt verb, %#v and %+v included.
func (Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText keeps the key pair out of JSON and structured logs.
func (Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Retrieve returns the key pair to the signer.
func (c Credentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{
		AccessKeyID:     c.AccessKeyID,
		SecretAccessKey: c.SecretAccessKey,
		SessionToken:    c.SessionToken,
	}, nil
}

// errNoCredentials replaces any error of a provider, because the cause may
// contain responses of a token service.
var errNoCredentials = errors.New("there are no credentials to sign requests with")

// guarded returns a provider whose failures can be distinguished from failures of the
// store. The result is a function, because fmt prints a function only as an address,
// without the credentials.
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
