package x10

// declared returns the number of nets in the spec.
//
// WRONG: if the spec declares none, the trawler has the default number, and is never ready. The bug is
// taken from WASdev/websphere-liberty-operator#116.
func declared(spec Spec) int64 {
	if spec.Nets == nil {
		return 0
	}
	return *spec.Nets
}
