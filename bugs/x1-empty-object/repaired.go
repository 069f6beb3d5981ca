package x1

// orNobody returns the user of the security settings.
//
// RIGHT: the function checks each optional field.
func orNobody(s *Security) int64 {
	if s == nil || s.RunAsUser == nil {
		return nobody
	}
	return *s.RunAsUser
}
