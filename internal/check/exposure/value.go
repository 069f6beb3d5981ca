package exposure

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

const (
	// shortest is the minimum length of a value, in bytes.
	shortest = 8
	// fewestDistinct is the minimum number of different characters in a value.
	fewestDistinct = 6
)

var (
	// credential matches the names of credentials in a Secret.
	credential = regexp.MustCompile(`(?i)(password|passwd|passphrase|\bpass|_pass|pwd|token|secret|credentials?|(api|secret[-_.]?access|auth|private|encryption|signing|secret|tls\.)[-_]?key)$|^(id_rsa|ssh-privatekey)$`)
	// nameLike matches words, with a number at the end, that programs and people use as names.
	nameLike = regexp.MustCompile(`(?i)^[a-z]+([-._:/ ]?[a-z]+)*[-._]?\d{0,4}$`)
	hostLike = regexp.MustCompile(`(?i)^[a-z0-9-]+(\.[a-z0-9-]+)+(:\d+)?$`)
	// reference matches hashes of passwords, and texts that say where a credential is: in a vault, in a
	// file, in a variable.
	reference = regexp.MustCompile(`^([^:\s]+:)?(\$(2[abxy]|5|6|apr1|argon2\w*)\$|\{SHA)|^arn:|^/|^[A-Za-z][\w+.-]*:[^\s@]*/[^\s@]*$|^projects/|\$[({]|\{\{`)
	// separators join the words of a name or a path, and give a text no variety.
	separators = "-_./:, \t\r\n"
)

// sensitive reports whether a value in a Secret is a credential, and so unusual that another text
// contains it only if it was copied.
func sensitive(key, plain string) bool {
	plain = strings.TrimSpace(plain)
	if strings.Contains(plain, "PRIVATE KEY-----") {
		return true
	}
	return credential.MatchString(key) && len(plain) >= shortest && !scrub.Ordinary(plain) && !state.IsTime(plain) &&
		!isAddress(plain) && !reference.MatchString(plain) && !nameLike.MatchString(plain) && varied(plain) && !strings.Contains(plain, "-----BEGIN")
}

// isAddress reports whether a text is the address of a server, without a password.
func isAddress(text string) bool {
	if hostLike.MatchString(text) {
		return true
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return false
	}
	_, has := u.User.Password()
	return !has
}

// varied reports whether a text has many different characters, of more than one class.
func varied(text string) bool {
	distinct := map[rune]bool{}
	var letter, digit, symbol bool
	for _, r := range text {
		distinct[r] = true
		switch {
		case unicode.IsLetter(r):
			letter = true
		case unicode.IsDigit(r):
			digit = true
		case !strings.ContainsRune(separators, r):
			symbol = true
		}
	}
	return len(distinct) >= fewestDistinct && (letter && digit || symbol && !strings.ContainsRune(text, '/'))
}

// forms returns the ways in which programs write a value.
func forms(plain string) (all []string) {
	add := func(form string) {
		for _, known := range all {
			if known == form {
				return
			}
		}
		all = append(all, form)
	}
	trimmed := strings.TrimSpace(plain)
	add(trimmed)
	if quoted, err := json.Marshal(trimmed); err == nil {
		add(strings.Trim(string(quoted), `"`))
	}
	for _, text := range []string{plain, trimmed} {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			add(encoding.EncodeToString([]byte(text)))
		}
	}
	return all
}

// in returns where a text contains the value as a whole, not as a part of a longer word.
func (v value) in(text string) (from, to int, found bool) {
	for _, form := range v.forms {
		for at := 0; ; {
			i := strings.Index(text[at:], form)
			if i < 0 {
				break
			}
			from, to = at+i, at+i+len(form)
			if whole(text, from, to) {
				return from, to, true
			}
			at = from + 1
		}
	}
	return 0, 0, false
}

// whole reports whether a part of a text neither begins nor ends within a word.
func whole(text string, from, to int) bool {
	return (from == 0 || !alphanumeric(text[from-1]) || !alphanumeric(text[from])) &&
		(to == len(text) || !alphanumeric(text[to]) || !alphanumeric(text[to-1]))
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
