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
		{"an empty list allows nothing", "", "ghcr.io/acme/viewer", false},
		{"a repository is allowed with any tag", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer:v1", true},
		{"a repository is allowed with any digest", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer" + sha, true},
		{"a repository is allowed without a tag", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer", true},
		{"another repository is not allowed", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer2", false},
		{"another host is not allowed", "ghcr.io/acme/viewer", "evil.example/ghcr.io/acme/viewer", false},
		{"a star stands for a part of a name", "ghcr.io/acme/*", "ghcr.io/acme/anything:v1", true},
		{"a star does not stand for a slash", "ghcr.io/acme/*", "ghcr.io/acme/team/viewer", false},
		{"two stars also stand for slashes", "ghcr.io/acme/**", "ghcr.io/acme/team/viewer:v1" + sha, true},
		{"two stars do not extend the name before them", "ghcr.io/acme/**", "ghcr.io/acmeevil/viewer", false},
		{"a dot stands only for a dot", "ghcr.io/acme/*", "ghcrxio/acme/viewer", false},
		{"two dots are not a name", "ghcr.io/acme/**", "ghcr.io/acme/../evil/viewer", false},
		{"a tag must be the same", "ghcr.io/acme/viewer:v1", "ghcr.io/acme/viewer:v1", true},
		{"another tag is not allowed", "ghcr.io/acme/viewer:v1", "ghcr.io/acme/viewer:v2", false},
		{"a tag may have stars", "ghcr.io/acme/viewer:v1.*", "ghcr.io/acme/viewer:v1.2", true},
		{"an image without a tag has the tag latest", "ghcr.io/acme/viewer:latest", "ghcr.io/acme/viewer", true},
		{"a pattern with a tag does not match a digest", "ghcr.io/acme/viewer:v1", "ghcr.io/acme/viewer:v1" + sha, false},
		{"a digest must be the same", "ghcr.io/acme/viewer" + sha, "ghcr.io/acme/viewer:v9" + sha, true},
		{"a pattern with a digest does not match a tag", "ghcr.io/acme/viewer" + sha, "ghcr.io/acme/viewer:v9", false},
		{"a port is not a tag", "localhost:5000/viewer", "localhost:5000/viewer:v1", true},
		{"a short name is a name at Docker Hub", "peaceiris/mdbook", "docker.io/peaceiris/mdbook:v0.4.10", true},
		{"a name at Docker Hub matches the short name", "docker.io/peaceiris/mdbook", "peaceiris/mdbook", true},
		{"the other host name of Docker Hub matches, too", "peaceiris/mdbook", "index.docker.io/peaceiris/mdbook", true},
		{"the prefix index. of another host makes a different host", "ghcr.io/acme/viewer", "index.ghcr.io/acme/viewer", false},
		{"an official image is in the repository library", "nginx", "docker.io/library/nginx:1", true},
		{"an official image matches without the repository library", "nginx", "docker.io/nginx", true},
		{"a single star allows every image", "*", "evil.example/x:y", true},
		{"a single star does not allow an invalid image", "*", "evil.example/x:y:z", false},
		{"one matching pattern is enough", "ghcr.io/acme/viewer,peaceiris/mdbook", "peaceiris/mdbook:v1", true},
		{"a repository cannot contain capital letters", "ghcr.io/acme/**", "ghcr.io/acme/Viewer", false},
		{"an empty tag is invalid", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer:", false},
		{"an empty digest is invalid", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer@", false},
		{"an empty tag before a digest is invalid", "ghcr.io/acme/viewer", "ghcr.io/acme/viewer:" + sha, false},
		{"an empty name is not an image", "*", "", false},
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
