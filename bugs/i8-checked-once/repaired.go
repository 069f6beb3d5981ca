package i8

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// orUnknown takes a kind to be absent only if the API server says so. With any other error, the controller
// exits, and is started again.
func orUnknown(err error) (installed bool, _ error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
