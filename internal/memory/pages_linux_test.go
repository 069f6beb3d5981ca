package memory

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestOnlyWhatCannotDifferFromTheFileIsGivenBack(t *testing.T) {
	const program = "/usr/bin/ko boshi"
	for name, test := range map[string]struct {
		header, anonymous string
		want              int
	}{
		"code":              {"00400000-0390c000 r-xp 00000000 fe:00 1234    " + program, "0", 1},
		"constants":         {"0390c000-06eb0000 r--p 0350c000 fe:00 1234    " + program, "0", 1},
		"relocated":         {"0390c000-06eb0000 r--p 0350c000 fe:00 1234    " + program, "4", 0},
		"variables":         {"06eb0000-07000000 rw-p 06ab0000 fe:00 1234    " + program, "0", 0},
		"another program":   {"7f0000000000-7f0000001000 r-xp 00000000 fe:00 9  /lib/libc.so.6", "0", 0},
		"the store":         {"7f0000000000-7f0000001000 r--s 00000000 00:16 9  /data/etcd/db", "0", 0},
		"heap":              {"c000000000-c008000000 rw-p 00000000 00:00 0", "512", 0},
		"no address":        {"zz-yy r-xp 0 0 0 " + program, "0", 0},
		"upside down":       {"02-01 r-xp 0 0 0 " + program, "0", 0},
		"a mapping too few": {"Size: 4 kB", "0", 0},
	} {
		smaps := test.header + "\nSize:  4 kB\nRss:  4 kB\nAnonymous:  " + test.anonymous + " kB\nVmFlags: rd ex mr mw me\n"
		if got := unchanged([]byte(smaps), program); len(got) != test.want {
			t.Errorf("%s: %d mappings, want %d", name, len(got), test.want)
		}
	}
}

// constants is memory that exists only in the program's file.
var constants = strings.Repeat("x", 3)

func TestAProgramGoesOnAfterItHasGivenBackItsPages(t *testing.T) {
	before := fileBacked(t)
	GiveBackPages()
	after := fileBacked(t)
	if after >= before {
		t.Errorf("%d kB of files are resident, and %d kB were before", after, before)
	}
	if strings.ToUpper(constants) != "XXX" {
		t.Error("a constant changed")
	}
}

// fileBacked returns the RssFile of this process, in kB.
func fileBacked(t *testing.T) int {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "RssFile:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kb
		}
	}
	t.Skip("this kernel does not report RssFile")
	return 0
}
