package controller

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/probe"
)

// credentials are what a bucket's Secret holds.
type credentials struct {
	keys probe.Credentials
	// version changes whenever the Secret does; it is empty when there is none.
	version string
	// problem is set when the keys cannot be used.
	problem *probe.Result
}

// readCredentials reads the Secret a bucket refers to. A Secret that is
// missing or incomplete is an answer, not an error: a change of the Secret
// brings the bucket back here.
func (r *Reconciler) readCredentials(ctx context.Context, bucket *storagev1alpha1.StorageBucket) (credentials, error) {
	name := bucket.Spec.CredentialsSecretRef.Name
	var secret corev1.Secret
	err := r.Secrets.Get(ctx, types.NamespacedName{Namespace: bucket.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return credentials{problem: &probe.Result{
			Reason:  ReasonCredentialsNotFound,
			Message: fmt.Sprintf("there is no Secret %q in the namespace", name),
		}}, nil
	}
	if err != nil {
		return credentials{}, fmt.Errorf("reading the credentials Secret %q: %w", name, err)
	}
	return credentialsOf(&secret), nil
}

// credentialsOf picks the keys out of a Secret and says, without showing them,
// what is wrong with them.
func credentialsOf(secret *corev1.Secret) credentials {
	c := credentials{
		version: string(secret.UID) + "/" + secret.ResourceVersion,
		keys: probe.Credentials{
			AccessKeyID:     string(secret.Data[storagev1alpha1.AccessKeyIDKey]),
			SecretAccessKey: string(secret.Data[storagev1alpha1.SecretAccessKeyKey]),
		},
	}
	for _, field := range []struct{ key, value string }{
		{storagev1alpha1.AccessKeyIDKey, c.keys.AccessKeyID},
		{storagev1alpha1.SecretAccessKeyKey, c.keys.SecretAccessKey},
	} {
		switch {
		case field.value == "":
			c.problem = &probe.Result{
				Reason:  ReasonCredentialsNotFound,
				Message: fmt.Sprintf("Secret %q has no key %s", secret.Name, field.key),
			}
			return c
		case strings.ContainsFunc(field.value, unprintable):
			// Most often the line end of an echo without -n. The store would
			// call it a wrong signature, which sends people looking elsewhere.
			c.problem = &probe.Result{
				Reason:  probe.ReasonInvalidCredentials,
				Message: fmt.Sprintf("Secret %q has white space or control characters in %s", secret.Name, field.key),
			}
			return c
		}
	}
	return c
}

func unprintable(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
