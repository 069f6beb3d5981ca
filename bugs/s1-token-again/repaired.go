package s1

// fromStatus returns the token that the status reports, if there is one.
//
// RIGHT: a token that was reported may have been used, so it stays. Two tokens cannot be generated,
// because the update of the status fails if another update came first.
func fromStatus(_ *reconciler, cluster *Cluster) string {
	if cluster.Status.JoinToken != "" {
		return cluster.Status.JoinToken
	}
	return generate()
}
