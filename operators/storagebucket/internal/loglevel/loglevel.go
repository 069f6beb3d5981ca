// Package loglevel limits how much is logged.
package loglevel

import "go.uber.org/zap/zapcore"

// bodies is the verbosity at which client-go logs what it sends and receives.
// Source: k8s.io/client-go/rest, logBody.
const bodies = 8

// WithoutBodies keeps the requests to the API server and its responses out of
// the log, however verbose the user wants it to be: they include the Secrets
// with credentials. A nil level stays nil, which means a default below that
// verbosity.
func WithoutBodies(level zapcore.LevelEnabler) zapcore.LevelEnabler {
	if level == nil {
		return nil
	}
	return bounded{level}
}

type bounded struct{ zapcore.LevelEnabler }

// Enabled takes zap's levels, in which verbosity n is -n.
func (b bounded) Enabled(l zapcore.Level) bool {
	return l > -bodies && b.LevelEnabler.Enabled(l)
}
