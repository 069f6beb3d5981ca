package e4

// thoseOfDeletion are the tasks that a resource that is to go still has.
func thoseOfDeletion(task string) bool { return task == collect }
