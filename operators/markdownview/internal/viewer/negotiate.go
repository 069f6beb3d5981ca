package viewer

import (
	"strconv"
	"strings"
)

// acceptsGzip reports whether Accept-Encoding allows gzip. An item for gzip takes
// precedence over an item for *; the item that decides must have a weight of more than 0.
func acceptsGzip(values []string) bool {
	star := false
	for _, value := range values {
		for value != "" {
			var item string
			item, value, _ = strings.Cut(value, ",")
			coding, params, _ := strings.Cut(item, ";")
			switch coding = strings.TrimSpace(coding); {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				return weight(params) > 0
			case coding == "*":
				star = weight(params) > 0
			}
		}
	}
	return star
}

// weight returns the weight (q) of an item; the default is 1.
func weight(params string) float64 {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(strings.TrimSpace(key), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0
			}
			return q
		}
	}
	return 1
}

// matches reports whether If-None-Match contains a tag. The comparison is weak, because a
// proxy that makes a tag weak does not change the text.
func matches(values []string, tag string) bool {
	if tag == "" {
		return false
	}
	for _, value := range values {
		for value != "" {
			var item string
			item, value, _ = strings.Cut(value, ",")
			item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
			if item == tag || item == "*" {
				return true
			}
		}
	}
	return false
}
