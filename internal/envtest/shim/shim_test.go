package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFlagIsFoundInEverySpelling(t *testing.T) {
	for _, test := range []struct {
		args string
		want string
	}{
		{"--data-dir=/a", "/a"},
		{"-data-dir=/a", "/a"},
		{"--data-dir /a", "/a"},
		{"-data-dir /a", "/a"},
		{"--v=1 --data-dir=/a --x", "/a"},
		{"--data-dir=/b --data-dir=/a", "/a"},
		{"--data-dir-x=/b", ""},
		{"data-dir=/b", ""},
		{"--data-dir", ""},
		{"", ""},
	} {
		if got := Flag(strings.Fields(test.args), "data-dir"); got != test.want {
			t.Errorf("%q: %q, want %q", test.args, got, test.want)
		}
	}
}

func FuzzFlagsAndPortsOfAnythingAreReadWithoutPanic(f *testing.F) {
	f.Add("--etcd-servers=http://127.0.0.1:2379")
	f.Add("-etcd-servers http://[::1]:2379/,https://x")
	f.Fuzz(func(t *testing.T, line string) {
		port := Port(Flag(strings.Fields(line), "etcd-servers"))
		if port < 0 {
			t.Errorf("%q: port %d", line, port)
		}
	})
}

func TestThePortIsThatOfAPlainFirstURL(t *testing.T) {
	for urls, want := range map[string]int{
		"http://127.0.0.1:2379":                       2379,
		"http://127.0.0.1:2379/":                      2379,
		"http://[::1]:2379":                           2379,
		"http://127.0.0.1:2379,http://127.0.0.1:2380": 2379,
		"https://127.0.0.1:2379":                      0, // a host speaks no TLS for etcd
		"unix:///tmp/etcd":                            0,
		"http://localhost":                            0,
		"http://localhost:-1":                         0,
		"":                                            0,
	} {
		if got := Port(urls); got != want {
			t.Errorf("%q: %d, want %d", urls, got, want)
		}
	}
}

func TestOnlyAFolderOfEnvtestsIsRemoved(t *testing.T) {
	args := os.Args
	t.Cleanup(func() { os.Args = args })
	for name, gone := range map[string]bool{"k8s_test_framework_123": true, "mine": false} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(dir, "member"), 0o700); err != nil {
			t.Fatal(err)
		}
		os.Args = []string{Etcd, "--data-dir=" + dir}
		RemoveLeftover(Etcd)
		if _, err := os.Stat(dir); os.IsNotExist(err) != gone {
			t.Errorf("%s: %v, want it gone: %t", name, err, gone)
		}
	}
}

func TestHelpIsAskedForByItsFlagsAlone(t *testing.T) {
	for args, want := range map[string]bool{"--help": true, "-h": true, "--v=2 -help": true, "--data-dir=--help": false, "": false} {
		if got := wantsHelp(strings.Fields(args)); got != want {
			t.Errorf("%q: %t, want %t", args, got, want)
		}
	}
}
