package viewer

import (
	"log/slog"
	"net/http"
	"time"
)

// logged logs each request, but not its search query or its client's address.
func logged(next http.Handler, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		counted := &counter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(counted, r)
		logger.Info("request", "method", r.Method, "path", r.URL.Path, "status", counted.status,
			"bytes", counted.bytes, "took", time.Since(started))
	})
}

type counter struct {
	http.ResponseWriter
	status int
	bytes  int
}

func (c *counter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.bytes += n
	return n, err
}
