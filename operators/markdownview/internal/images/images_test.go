package images

import (
	"strings"
	"testing"
)

const sha = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		claim, patterns, image string
		want                   bool
	}{
		{"nothing allows nothing", "", "ghcr.io/acme/viewer", false},
		{"a repository is allowed with any tag", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer:v1", true},
		{"a repository is allowed with any digest", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer" + sha, true},
		{"a repository is allowed without a tag", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer", true},
		{"another repository is not", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer2", false},
		{"another host is not", "ghcr.io/acme/viewer", "evil.example/ghcr.io/acme/viewer", false},
		{"a star stands for a part of a name", "ghcr.io/acme/*", "ghcr.io/acme/anything:v1", true},
		{"a star does not stand for a slash", "ghcr.io/acme/*", "ghcr.io/acme/team/viewer", false},
		{"two stars do", "ghcr.io/acme/**", "ghcr.io/acme/team/viewer:v1" + sha, true},
		{"two stars end at the host", "ghcr.io/acme/**", "ghcr.io/acmeevil/viewer", false},
		{"a dot is a dot", "ghcr.io/acme/*", "ghcrxio/acme/viewer", false},
		{"a way up is not a name", "ghcr.io/acme/**", "ghcr.io/acme/../evil/viewer", false},
		{"a tag must be the same", "ghcr.io/acme/viewer:v1", "ghcr.io/acme/viewer:v1", true},
		{"another tag is not", "ghcr.io/acme/viewer:v1", "ghcr.io/acme/viewer:v2", false},
		{"a tag may have stars", "ghcr.io/acme/viewer:v1.*", "ghcr.io/acme/viewer:v1.2", true},
		{"no tag is latest", "ghcr.io/acme/viewer:latest", "ghcr.io/acme/viewer", true},
		{"a digest is not what a tag promises", "ghcr.io/acme/viewer:v1", "ghcr.io/acme/viewer:v1" + sha, false},
		{"a digest must be the same", "ghcr.io/acme/viewer" + sha, "ghcr.io/acme/viewer:v9" + sha, true},
		{"a tag is not a digest", "ghcr.io/acme/viewer" + sha, "ghcr.io/acme/viewer:v9", false},
		{"a port is not a tag", "localhost:5000/viewer", "localhost:5000/viewer:v1", true},
		{"a short name is Docker's", "peaceiris/mdbook", "docker.io/peaceiris/mdbook:v0.4.10", true},
		{"Docker's name is the short one", "docker.io/peaceiris/mdbook", "peaceiris/mdbook", true},
		{"Docker's other name too", "peaceiris/mdbook", "index.docker.io/peaceiris/mdbook", true},
		{"an index of another host is another host", "ghcr.io/acme/viewer", "index.ghcr.io/acme/viewer", false},
		{"an official image is one of the library", "nginx", "docker.io/library/nginx:1", true},
		{"the library is understood", "nginx", "docker.io/nginx", true},
		{"a single star is every image", "*", "evil.example/x:y", true},
		{"a single star is no nonsense", "*", "evil.example/x:y:z", false},
		{"one of several is enough", "ghcr.io/acme/viewer,peaceiris/mdbook", "peaceiris/mdbook:v1", true},
		{"upper case is no repository", "ghcr.io/acme/**", "ghcr.io/acme/Viewer", false},
		{"a hanging tag is none", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer:", false},
		{"a hanging digest is none", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer@", false},
		{"a hanging tag before a digest is none", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer:" + sha, false},
		{"nothing is no image", "*", "", false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			l, err := Parse(strings.Split(c.patterns, ",")...)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Allows(c.image); got != c.want {
				t.Errorf("%q with %q allowed: %v, want %v", c.image, c.patterns, got, c.want)
			}
		})
	}
}

func TestAPatternThatIsNoImageIsRefused(t *testing.T) {
	for _, text := range []string{"https://ghcr.io/acme", "ghcr.io/acme/", "/acme", "ghcr.io/acme viewer", "ghcr.io/acme:v 1", "ghcr.io/acme@sha256:12", "a//b", "(x)"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "write it like") {
			t.Errorf("%q: %v, want an error that says what to write", text, err)
		}
	}
}

func FuzzAllows(f *testing.F) {
	f.Add("ghcr.io/acme/*", "ghcr.io/acme/viewer:v1")
	f.Add("nginx", "docker.io/library/nginx"+sha)
	f.Fuzz(func(t *testing.T, pattern, image string) {
		l, err := Parse(pattern)
		if err != nil {
			return
		}
		if l.Allows(image) && !Valid(image) {
			t.Errorf("%q allows %q", pattern, image)
		}
		if only, err := Parse(image); err == nil && Valid(image) && !only.Allows(image) {
			t.Errorf("%q does not allow itself", image)
		}
	})
}
