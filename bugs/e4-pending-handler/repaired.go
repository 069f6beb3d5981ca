package e4

// thoseOfDeletion reports whether the task is part of the deletion of a resource.
func thoseOfDeletion(task string) bool { return task == collect }
