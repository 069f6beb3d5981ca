package apiproxy

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// upgrade forwards exec, attach, port-forward and web sockets. Nothing is recorded once
// the protocol has changed.
func (x *exchange) upgrade(to *url.URL, host string) {
	through := &httputil.ReverseProxy{
		Transport: x.upgrades,
		ErrorLog:  log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = to
			r.Out.Host = host
		},
		ModifyResponse: func(resp *http.Response) error {
			if x.action.Drop {
				x.call.Lost = true
				x.fail("")
			}
			x.call.Code = resp.StatusCode
			x.recordCall()
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { x.unreachable(err) },
	}
	through.ServeHTTP(x.w, x.r)
}
