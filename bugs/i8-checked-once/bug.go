package i8

// orAbsent has the bug of cilium/cilium#43130. Any error of the first request counts as if the kind were
// not installed, and nothing asks again. So if the controller starts while the API server cannot be
// reached, or while etcd elects a leader, Routes are no longer maintained, although everything else is.
func orAbsent(err error) (installed bool, _ error) { return err == nil, nil }
