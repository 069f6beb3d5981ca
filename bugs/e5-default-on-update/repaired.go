package e5

import admissionv1 "k8s.io/api/admission/v1"

// whenMade fills in once, in what is new. Nobody takes it away again later: an
// apply leaves alone what is not in it.
func whenMade(o admissionv1.Operation) bool { return o == admissionv1.Create }
