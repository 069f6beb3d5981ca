package contract

// roles maps the roles that a test may start this binary in.
var roles = map[string]func() error{
	watcher:  watchForever,
	stopper:  stopAtOnce,
	busy:     compute,
	isolated: useWithoutNetwork,
}
