// Package serviceaccount obtains tokens of service accounts.
package serviceaccount

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Token returns a token of a service account that is valid for the given time, and the time at
// which it expires.
func Token(ctx context.Context, client kubernetes.Interface, namespace, name string, life time.Duration) (token string, expires time.Time, err error) {
	seconds := int64(life.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	var issued *authenticationv1.TokenRequest
	err = whenCreated(ctx, name, func(ctx context.Context) (err error) {
		issued, err = client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return "", time.Time{}, fmt.Errorf("creating a token for the service account %s/%s: %w", namespace, name, err)
	}
	return issued.Status.Token, issued.Status.ExpirationTimestamp.Time, nil
}

// defaultAccount is the service account that a controller of Kubernetes creates in each
// namespace, some time after the namespace.
const defaultAccount = "default"

const (
	poll = 5 * time.Millisecond
	// within limits the wait for the default account. A loaded machine is slow to create it.
	within = 2 * time.Minute
)

// whenCreated calls request for a service account, and repeats it while the default account
// of a new namespace does not exist yet. Any other account is part of the installation.
func whenCreated(ctx context.Context, account string, request func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, poll, within, true, func(ctx context.Context) (bool, error) {
		last = request(ctx)
		if account == defaultAccount && apierrors.IsNotFound(last) {
			return false, nil
		}
		return true, last
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}
