package o3

import "context"

// ignored does nothing.
//
// WRONG: after an upgrade, the ConfigMap with the old name stays for as long as the kiosk exists. In
// cloudfoundry-incubator/quarks-operator#877, workloads with the old names went on running beside the new
// ones; in IBM/ibm-spectrum-scale-csi#186, security constraints with the old name stayed.
func (r *reconciler) ignored(context.Context, *Kiosk) error { return nil }
