package x1

// dereferenced returns the user of the security settings.
//
// WRONG: the settings may be an empty object, as in "security: {}". The schema allows that, and then
// the controller panics in each reconcile. The bug is taken from minio/operator#1389 and
// knative/operator#1137.
func dereferenced(s *Security) int64 {
	if s == nil {
		return nobody
	}
	return *s.RunAsUser
}
