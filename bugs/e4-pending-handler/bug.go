package e4

// every is the bug of nolar/kopf#601: a resource is not let go before all of its
// tasks are done, and the one of its creation waits for something that never
// comes. Nobody tries that one any more once the resource is to go; so the
// controller wakes itself, finds it undone, and wakes itself again.
func every(string) bool { return true }
