package footprint

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smaps = `00400000-00452000 r-xp 00000000 08:02 173521      /opt/a program/etcd
Size:                328 kB
Rss:                 100 kB
Pss:                  40 kB
Pss_Dirty:             7 kB
VmFlags: rd ex mr mw me
c000000000-c000400000 rw-p 00000000 00:00 0
Rss:                2000 kB
Pss:                2000 kB
7f0000000000-7f0000100000 r--s 00000000 00:1a 99   /dev/shm/plane/db
Rss:                 512 kB
Pss:                 512 kB
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0    [stack]
Rss:                   8 kB
Pss:                   8 kB
`

func TestMappingsAreRead(t *testing.T) {
	got, err := parseSmaps(strings.NewReader(smaps))
	if err != nil {
		t.Fatal(err)
	}
	want := []mapping{
		{"/opt/a program/etcd", 100 << 10, 40 << 10},
		{"", 2000 << 10, 2000 << 10},
		{"/dev/shm/plane/db", 512 << 10, 512 << 10},
		{"[stack]", 8 << 10, 8 << 10},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
	for _, broken := range []string{"Rss: 1 kB\n", "0-1 r 0 0 0\nRss: many kB\n"} {
		if got, err := parseSmaps(strings.NewReader(broken)); err == nil {
			t.Errorf("%q is read as %v", broken, got)
		}
	}
}

func TestAFileInMemoryIsCountedOnceAndWhole(t *testing.T) {
	mappings := []mapping{{"", 100, 100}, {"/dev/shm/db", 30, 30}, {"/usr/lib/x.so", 8, 2}}
	got := sum(mappings, Files{"/dev/shm/db": 50, "/dev/shm/wal": 5})
	if want := (Memory{RSS: 163, PSS: 157}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOnlyNewOrHeldFilesAreCharged(t *testing.T) {
	now := Files{"/dev/shm/mine": 1, "/dev/shm/older-mine": 2, "/dev/shm/foreign": 4}
	before := Files{"/dev/shm/older-mine": 2, "/dev/shm/foreign": 1, "/dev/shm/gone": 8}
	got := now.charged(before, map[string]bool{"/dev/shm/older-mine": true, "/home/x": true})
	if diff := cmp.Diff(Files{"/dev/shm/mine": 1, "/dev/shm/older-mine": 2}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMountsInMemoryAreTold(t *testing.T) {
	const mounts = `/dev/vda / ext4 rw 0 0
tmpfs /dev/shm tmpfs rw,nosuid 0 0
tmpfs /mnt/a\040b tmpfs rw 0 0
proc /proc proc rw 0 0
`
	if diff := cmp.Diff([]string{"/dev/shm", "/mnt/a b"}, memoryBacked(mounts)); diff != "" {
		t.Error(diff)
	}
}

const hold = "FOOTPRINT_TEST_FILE"

// TestMain lets the test binary act as a process that holds memory and a file.
func TestMain(m *testing.M) {
	path, play := os.LookupEnv(hold)
	if !play {
		os.Exit(m.Run())
	}
	if err := holdMemory(path); err != nil {
		panic(err)
	}
}

const heap, file, mapped = 48 << 20, 16 << 20, 4 << 20

func holdMemory(path string) error {
	used := bytes.Repeat([]byte{1}, heap)
	if err := os.WriteFile(path, used[:file], 0o600); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	view, err := syscall.Mmap(int(f.Fd()), 0, mapped, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	sum := byte(0)
	for at := 0; at < mapped; at += os.Getpagesize() { // so that each page is really mapped
		sum += view[at]
	}
	fmt.Println("holding", sum)
	_, err = os.Stdin.Read(make([]byte, 1)) // until the test closes it
	_ = used[0]
	if err != nil {
		return nil
	}
	return f.Close()
}

func TestTheMemoryOfALivingProcessIsItsHeapAndItsFile(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "footprint-test-")
	if err != nil {
		t.Skipf("no /dev/shm here: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	before, err := InMemory()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hold+"="+filepath.Join(dir, "store"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	if _, err := stdout.Read(make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	now, err := InMemory()
	if err != nil {
		t.Fatal(err)
	}
	// Other tests on this machine may write files at the same time.
	maps.DeleteFunc(now, func(path string, _ int64) bool { return !strings.HasPrefix(path, dir) })
	got, err := take(before, now, []int{cmd.Process.Pid})
	if err != nil {
		t.Fatal(err)
	}
	// The kernel's own sum already includes the mapped part of the file.
	if want := kernelRSS(t, cmd.Process.Pid) + file - mapped; max(got.RSS-want, want-got.RSS) > 2<<20 {
		t.Errorf("RSS is %d KiB, want about %d KiB", got.RSS>>10, want>>10)
	}
	if got.PSS > got.RSS || got.PSS < heap+file {
		t.Errorf("PSS is %d MiB, want at least heap and file, %d MiB, and no more than RSS, %d MiB", got.PSS>>20, (heap+file)>>20, got.RSS>>20)
	}
}

// kernelRSS returns the kernel's own sum for a process, in bytes.
func kernelRSS(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb * 1024
		}
	}
	t.Fatal("the kernel reports no VmRSS")
	return 0
}
