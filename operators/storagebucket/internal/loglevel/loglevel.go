// Package loglevel bounds how much can be logged.
package loglevel

import "go.uber.org/zap/zapcore"

// bodies is the verbosity at which client-go logs what it sends and receives.
// Source: k8s.io/client-go/rest, logBody.
const bodies = 8

// WithoutBodies keeps requests to and answers from the API server out of the
// log, however verbose the user asks it to be: the credentials Secrets are
// among them. A nil level stays nil, which stands for a default below that.
func WithoutBodies(level zapcore.LevelEnabler) zapcore.LevelEnabler {
	if level == nil {
		return nil
	}
	return bounded{level}
}

type bounded struct{ zapcore.LevelEnabler }

// Enabled takes zap's levels, where verbosity n is -n.
func (b bounded) Enabled(l zapcore.Level) bool {
	return l > -bodies && b.LevelEnabler.Enabled(l)
}
