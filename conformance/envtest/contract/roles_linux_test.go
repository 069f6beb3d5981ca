package contract

// roles are what a test may start this binary as.
var roles = map[string]func() error{
	watcher:  watchForever,
	busy:     compute,
	isolated: useWithoutNetwork,
}
