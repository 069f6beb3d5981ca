package subject

import "testing"

func TestUserIsTheServiceAccountAsTheServerNamesIt(t *testing.T) {
	for want, s := range map[string]Subject{
		"system:serviceaccount:system:manager":  {Identity: ServiceAccount{Namespace: "system", Name: "manager"}},
		"system:serviceaccount:default:default": {},
	} {
		if got := s.User(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
