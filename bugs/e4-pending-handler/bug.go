package e4

// every has the bug of nolar/kopf#601: the finalizer stays until all tasks are done, and
// the task of the creation waits for something that never happens. Once the resource is
// being deleted, that task is not tried any more. So the controller wakes itself, finds
// the task pending, and wakes itself again.
func every(string) bool { return true }
