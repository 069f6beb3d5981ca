//go:build !linux

package measure

import "errors"

func pin(int) error { return errors.ErrUnsupported }
