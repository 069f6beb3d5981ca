package e5

import admissionv1 "k8s.io/api/admission/v1"

// onCreation adds the defaults only to new objects. The defaults stay, because an apply
// does not touch fields that it does not mention.
func onCreation(o admissionv1.Operation) bool { return o == admissionv1.Create }
