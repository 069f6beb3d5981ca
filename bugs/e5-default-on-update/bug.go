package e5

import admissionv1 "k8s.io/api/admission/v1"

// always has the bug of kubernetes-sigs/jobset#926. The webhook decodes and encodes the
// object, which adds an empty creationTimestamp to the object's template, although the CRD
// has no such field. The API server writes the creationTimestamp to the store but omits it
// in every read, so each apply is a change again, which leads to a new generation, an
// event, and another apply.
func always(admissionv1.Operation) bool { return true }
