package subject

// User returns the name that the API server gives to the controller's identity. A controller without an
// identity of its own runs as an administrator; in a cluster, it would have some service account.
func (s *Subject) User() string {
	account := s.Identity
	if account.Name == "" {
		account = ServiceAccount{Namespace: "default", Name: "default"}
	}
	return "system:serviceaccount:" + account.Namespace + ":" + account.Name
}
