package v1

// Hub marks v1 as the version all others are converted to and from.
func (*StorageBucket) Hub() {}
