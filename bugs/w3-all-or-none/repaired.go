package w3

import "errors"

// each handles all beacons, and then returns the errors.
//
// RIGHT: a beacon that fails is tried again, and the others are handled in the same pass.
func each(beacons []Beacon, handle func(*Beacon) error) error {
	var failed []error
	for i := range beacons {
		failed = append(failed, handle(&beacons[i]))
	}
	return errors.Join(failed...)
}
