package contract

// roles maps each role in which a test may start this binary to its function.
var roles = map[string]func() error{
	watcher:  watchForever,
	stopper:  stopAtOnce,
	busy:     compute,
	isolated: useWithoutNetwork,
}
