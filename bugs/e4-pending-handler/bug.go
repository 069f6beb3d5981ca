package e4

// every has the bug of nolar/kopf#601. The finalizer stays until all tasks are done, but
// the task for the creation waits for something that never happens. Once the resource is
// being deleted, the task for the creation is no longer tried. The controller wakes itself,
// finds a task pending, and wakes itself again.
func every(string) bool { return true }
