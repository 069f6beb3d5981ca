package s1

// fromMemory returns the token that this process has generated for a cluster.
//
// WRONG: after a restart, the memory is empty, so the controller generates another token. All
// members that know only the old token can no longer join. The bug is taken from
// arkmq-org/arkmq-org-broker-operator#58.
func fromMemory(r *reconciler, cluster *Cluster) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tokens[cluster.UID] == "" {
		r.tokens[cluster.UID] = generate()
	}
	return r.tokens[cluster.UID]
}
