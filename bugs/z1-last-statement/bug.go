package z1

// anyError reports that the statement must be written before the cleanup.
//
// WRONG: the server refuses to create objects in a namespace that is being deleted. So the finalizer is
// never removed, and the namespace stays. In banzaicloud/koperator#414, the credentials of a deleted user
// could not be created either; in rabbitmq/messaging-topology-operator#277, the cleanup needed a Secret that
// was deleted together with the namespace.
func anyError(error) bool { return true }
