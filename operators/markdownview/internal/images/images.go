// Package images limits the container images that authors may choose. Without a limit,
// authors could run any image, even if they have no right to create Pods.
package images

import (
	"fmt"
	"regexp"
	"strings"
)

// List holds the allowed images. The zero value allows no images.
type List struct {
	all      bool
	patterns []pattern
}

// pattern matches one image, or several images with wildcards.
type pattern struct {
	repository *regexp.Regexp
	digest     string
	tags       *regexp.Regexp // nil if the pattern has no tag
}

// These expressions define the grammar of image references. In a pattern, * may replace any
// part.
var (
	component = `[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`
	host      = `[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?`
	reference = regexp.MustCompile(`^(?:` + host + `/)?` + component + `(?:/` + component + `)*$`)
	tag       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	digest    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$`)
)

// Parse reads patterns such as ghcr.io/acme/*. Each pattern is an image, in which * matches
// any part of a name without a slash, and ** also matches slashes. A pattern without a tag
// matches every tag and digest. A pattern with a tag does not match an image with a digest,
// because the digest then decides what runs. The pattern * alone matches every image.
func Parse(patterns ...string) (List, error) {
	var l List
	for _, text := range patterns {
		text = strings.TrimSpace(text)
		switch text {
		case "":
			continue
		case "*":
			l.all = true
			continue
		}
		p, err := parse(text)
		if err != nil {
			return List{}, err
		}
		l.patterns = append(l.patterns, p)
	}
	return l, nil
}

func parse(text string) (pattern, error) {
	repository, tags, fixed := split(text)
	plain := strings.ReplaceAll(repository, "*", "x")
	if !reference.MatchString(plain) || tags != "" && !tag.MatchString(strings.ReplaceAll(tags, "*", "x")) || fixed != "" && !digest.MatchString(fixed) {
		return pattern{}, fmt.Errorf("reading the allowed image %q: it is neither an image nor a pattern; write it like ghcr.io/acme/* or ghcr.io/acme/viewer:v1", text)
	}
	p := pattern{repository: wildcards(complete(repository)), digest: fixed}
	if tags != "" {
		p.tags = wildcards(tags)
	}
	return p, nil
}

// Allows reports whether the list contains an image.
func (l List) Allows(image string) bool {
	repository, tags, fixed := split(image)
	if !Valid(image) {
		return false
	}
	if l.all {
		return true
	}
	for _, p := range l.patterns {
		if p.repository.MatchString(complete(repository)) && p.version(tags, fixed) {
			return true
		}
	}
	return false
}

func (p pattern) version(tags, fixed string) bool {
	switch {
	case p.digest != "":
		return fixed == p.digest
	case p.tags != nil:
		if tags == "" {
			tags = "latest"
		}
		return fixed == "" && p.tags.MatchString(tags)
	}
	return true
}

// Valid reports whether the text is a valid image name.
func Valid(image string) bool {
	repository, tags, fixed := split(image)
	return reference.MatchString(repository) &&
		(tags == "" && !strings.Contains(image, ":@") && !strings.HasSuffix(image, ":") || tag.MatchString(tags)) &&
		(fixed == "" && !strings.HasSuffix(image, "@") || digest.MatchString(fixed))
}

func split(image string) (repository, tag, digest string) {
	repository, digest, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(repository, ':'); colon > strings.LastIndexByte(repository, '/') {
		repository, tag = repository[:colon], repository[colon+1:]
	}
	return repository, tag, digest
}

// complete expands a short image name by the rules of container runtimes.
func complete(repository string) string {
	first, rest, several := strings.Cut(repository, "/")
	switch {
	case !several:
		return "docker.io/library/" + repository
	case !strings.ContainsAny(first, ".:*") && first != "localhost":
		return "docker.io/" + repository
	case (first == "docker.io" || first == "index.docker.io") && !strings.Contains(rest, "/"):
		return "docker.io/library/" + rest
	case first == "index.docker.io":
		return "docker.io/" + rest
	}
	return repository
}

func wildcards(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.ReplaceAll(quoted, `\*\*`, `.*`)
	quoted = strings.ReplaceAll(quoted, `\*`, `[^/]*`)
	return regexp.MustCompile("^" + quoted + "$")
}
