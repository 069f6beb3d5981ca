package s3store

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// ParseEndpoint parses the URL of an S3 API: http or https, a host, and optionally a port and a
// path. The errors of ParseEndpoint never repeat the input, because somebody may have put a
// password into it.
func ParseEndpoint(s string) (*url.URL, error) {
	if strings.ContainsAny(s, "@?#") {
		return nil, errors.New("endpoint must not contain a user, a query or a fragment")
	}
	u, err := url.Parse(s)
	if err != nil {
		// The error of url.Parse would quote the input.
		return nil, errors.New("endpoint is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("endpoint must be an http or https URL")
	}
	if u.Hostname() == "" {
		return nil, errors.New("endpoint must name a host")
	}
	if strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("endpoint has a host name that is not ASCII: write it in its xn-- form")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("endpoint has a port outside 1 to 65535")
		}
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}
