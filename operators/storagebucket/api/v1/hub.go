package v1

// Hub marks v1 as the version that all other versions are converted to and from.
func (*StorageBucket) Hub() {}
