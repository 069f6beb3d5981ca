// Package loglevel limits how much is logged.
package loglevel

import "go.uber.org/zap/zapcore"

// bodies is the verbosity at which client-go logs the bodies of requests and responses.
// Source: k8s.io/client-go/rest, logBody.
const bodies = 8

// WithoutBodies keeps the bodies of requests to the API server, and of its responses, out
// of the log, because they include the Secrets with credentials. WithoutBodies works at any
// verbosity that the user sets. A nil level stays nil, because nil stands for the default
// verbosity, which logs no bodies.
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
