package contract

// roles are what a test may start this binary as.
var roles = map[string]func() error{
	watcher:  watchForever,
	stopper:  stopAtOnce,
	busy:     compute,
	isolated: useWithoutNetwork,
}
