package s3store

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// busyWait is the minimum time after which a caller should try again if all places
	// for concurrent requests are taken.
	busyWait = 20 * time.Millisecond

	// maxWait is the longest time that a rejected caller should wait before it tries again,
	// unless the store itself has asked for a longer pause. If more callers are waiting than
	// the rate allows in maxWait, several callers get the same time, and some of them are
	// rejected again.
	maxWait = 30 * time.Second
)

// Limiter limits the requests to one store: the number per second and the number at the same time.
// The Limiter allows no requests during a pause that the store asked for. It is safe for concurrent
// use.
type Limiter struct {
	// Waited is called with each delay that the limits cause. Waited may be nil, and must not be
	// changed once the Limiter is in use.
	Waited func(time.Duration)

	tokens *rate.Limiter
	places chan struct{}
	gap    time.Duration

	mu     sync.Mutex
	paused time.Time
	// turn is the time at which the last rejected caller should try again. The next caller
	// gets a later time, so that rejected callers do not all try again at the same time.
	turn time.Time
}

// NewLimiter returns a Limiter that allows the given number of requests per second, and the
// given number at the same time. A burst may have as many requests as the rate allows in a
// quarter of a second. A limit below one is raised to one.
func NewLimiter(requestsPerSecond float64, concurrency int) *Limiter {
	// The condition is also true for NaN, which must become 1 as well.
	if !(requestsPerSecond >= 1) {
		requestsPerSecond = 1
	}
	requestsPerSecond = min(requestsPerSecond, 1e6)
	return &Limiter{
		tokens: rate.NewLimiter(rate.Limit(requestsPerSecond), max(1, int(requestsPerSecond/4))),
		places: make(chan struct{}, max(1, concurrency)),
		gap:    time.Duration(float64(time.Second) / requestsPerSecond),
	}
}

// DefaultLimiter returns a Limiter with the operator's default limits.
func DefaultLimiter() *Limiter { return NewLimiter(300, 16) }

// Concurrency returns the number of requests that may be in progress at the same
// time.
func (l *Limiter) Concurrency() int { return cap(l.places) }

// TryAcquire takes a place for one request. The caller must release the place after the
// request. If there is no place, TryAcquire does not wait, but returns the time after
// which the caller should try again. Rejected callers get different times.
func (l *Limiter) TryAcquire() (release func(), wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(l.paused) {
		return nil, l.sendAway(now, l.paused)
	}
	select {
	case l.places <- struct{}{}:
	default:
		return nil, l.sendAway(now, now.Add(busyWait))
	}
	if !l.tokens.AllowN(now, 1) {
		<-l.places
		missing := 1 - l.tokens.TokensAt(now)
		return nil, l.sendAway(now, now.Add(time.Duration(missing*float64(l.gap))))
	}
	return l.releaser(), 0
}

// sendAway assigns the caller the next free time at which to try again, which is never before the
// parameter earliest, and returns the wait until that time. The caller must hold l.mu.
func (l *Limiter) sendAway(now, earliest time.Time) time.Duration {
	l.turn = l.turn.Add(l.gap)
	if l.turn.Before(earliest) || l.turn.Sub(earliest) > maxWait {
		l.turn = earliest
	}
	wait := max(l.turn.Sub(now), time.Millisecond)
	l.waited(wait)
	return wait
}

func (l *Limiter) waited(d time.Duration) {
	if l.Waited != nil {
		l.Waited(d)
	}
}

// Acquire waits until it can take a place for one request, or until the
// context ends. The caller must release the place after the request.
func (l *Limiter) Acquire(ctx context.Context) (release func(), err error) {
	began := time.Now()
	defer func() { l.waited(time.Since(began)) }()
	select {
	case l.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = l.releaser()
	for {
		if err := sleepUntil(ctx, l.PausedUntil()); err != nil {
			release()
			return nil, err
		}
		if err := l.tokens.Wait(ctx); err != nil {
			release()
			return nil, err
		}
		if !time.Now().Before(l.PausedUntil()) {
			return release, nil
		}
	}
}

func (l *Limiter) releaser() func() {
	return sync.OnceFunc(func() { <-l.places })
}

// sleepUntil waits until t. sleepUntil returns an error if the context ends first, and does so
// immediately if the deadline of the context is before t.
func sleepUntil(ctx context.Context, t time.Time) error {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err()
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(t) {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// charge counts an additional request that is made without a place of its own, so that
// later requests wait longer.
func (l *Limiter) charge() { l.tokens.ReserveN(time.Now(), 1) }

// Pause makes all callers wait until the given time. Pause never shortens an earlier pause, and no
// pause is longer than MaxRetryAfter.
func (l *Limiter) Pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit := time.Now().Add(MaxRetryAfter); until.After(limit) {
		until = limit
	}
	if until.After(l.paused) {
		l.paused = until
	}
}

// PausedUntil returns when the current pause ends, or when the last one ended.
func (l *Limiter) PausedUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused
}
