package command

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/embed"
)

var update = flag.Bool("update", false, "rewrite the list of flags")

func TestTheListOfFlagsIsThatOfEtcd(t *testing.T) {
	fs := flag.NewFlagSet("etcd", flag.ContinueOnError)
	register(fs, embed.NewConfig())
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	slices.Sort(names)
	got := strings.Join(names, "\n") + "\n"
	const file = "../../../envtest/shim/etcd.flags"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(listed), got); diff != "" {
		t.Errorf("the list of flags is out of date; run this test with -update (-listed +upstream):\n%s", diff)
	}
}

func TestFlagsMeanWhatTheyMeanToEtcd(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "etcd.yaml")
	if err := os.WriteFile(file, []byte("name: filed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want func(*embed.Config) bool
	}{
		"envtest": {
			[]string{"--advertise-client-urls=http://127.0.0.1:1234", "--data-dir=" + dir, "--listen-client-urls=http://127.0.0.1:1234", "--listen-peer-urls=http://127.0.0.1:1235", "--unsafe-no-fsync=true"},
			func(c *embed.Config) bool {
				return c.Dir == dir && c.UnsafeNoFsync && c.ListenClientUrls[0].Port() == "1234" && c.TickMs == tick && c.ElectionMs == election
			},
		},
		"fabric8": {
			[]string{"-data-dir", dir, "-wal-dir", dir + "/wal", "--listen-client-urls", "http://0.0.0.0:1234", "--initial-cluster", "default=http://localhost:1235",
				"--advertise-client-urls", "http://0.0.0.0:1234", "--initial-advertise-peer-urls", "http://localhost:1235", "--listen-peer-urls", "http://localhost:1235"},
			func(c *embed.Config) bool {
				return c.WalDir == dir+"/wal" && !c.UnsafeNoFsync && c.InitialCluster == "default=http://localhost:1235"
			},
		},
		"ticks of the user": {
			[]string{"--data-dir", dir, "--heartbeat-interval=200", "--election-timeout=2000"},
			func(c *embed.Config) bool { return c.TickMs == 200 && c.ElectionMs == 2000 },
		},
		"a file":    {[]string{"--config-file=" + file}, func(c *embed.Config) bool { return c.Name == "filed" && c.Dir == "filed.etcd" }},
		"no folder": {nil, func(c *embed.Config) bool { return c.Dir == "default.etcd" }},
	} {
		var told bytes.Buffer
		c, code := Parse(test.args, &told)
		if c == nil || code != exitOK || !test.want(c.config) {
			t.Errorf("%s: code %d, %s, config %+v", name, code, &told, c)
		}
	}
}

func TestAWrongFlagIsNamedAndEndsWithUpstreamsCode(t *testing.T) {
	for flag, want := range map[string]int{
		"--no-such-flag": exitUsage,
		"--listen-client-urls=http://127.0.0.1:notaport": exitUsage,
		"--initial-cluster-state=old":                    exitUsage,
		"--election-timeout=1":                           exitError,
		"extra":                                          exitError,
		"--listen-client-urls=http://127.0.0.1:1":        exitError, // without --advertise-client-urls
	} {
		var told bytes.Buffer
		c, code := Parse([]string{flag}, &told)
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if name == "listen-client-urls" && want == exitError {
			name = "advertise-client-urls"
		}
		if c != nil || code != want || !strings.Contains(strings.ReplaceAll(told.String(), "election timeout", "election-timeout"), name) {
			t.Errorf("%s: code %d, want %d; stderr is %q, want it to name %s", flag, code, want, &told, name)
		}
	}
}
