package e5

import admissionv1 "k8s.io/api/admission/v1"

// always is the bug of kubernetes-sigs/jobset#926: what the webhook decodes and
// encodes has an empty creationTimestamp in its template, which the definition
// does not know. The API server keeps it in the store, and leaves it out whenever
// it reads. So each apply is a change again: a new generation, an event, and the
// next apply.
func always(admissionv1.Operation) bool { return true }
