package w3

// untilAnError handles the beacons up to the first one that fails.
//
// WRONG: the beacons after it are not handled until somebody repairs it. The bug is taken from
// openperouter/openperouter#423; kube-logging's logging-operator had it, too (#615).
func untilAnError(beacons []Beacon, handle func(*Beacon) error) error {
	for i := range beacons {
		if err := handle(&beacons[i]); err != nil {
			return err
		}
	}
	return nil
}
