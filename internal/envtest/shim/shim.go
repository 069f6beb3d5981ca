// Package shim runs before everything else when the program is called under the name etcd or
// kube-apiserver, as envtest does. The shim answers --help immediately, and hands the work to a
// host: one process that runs both servers.
//
//	test ──exec──▶ etcd            (shim) ──spawns, asks──▶ host: etcd
//	     ──exec──▶ kube-apiserver  (shim) ──────asks──────▶ host: kube-apiserver
//
// The shims are the processes that envtest sees, signals and waits for. Each shim lives exactly as
// long as its server in the host. SIGSTOP stops a shim but not its server, because a process cannot
// notice this signal and forward it. A shim costs 10 ms and 7 MB, whereas a program that
// initializes all of Kubernetes takes 60 ms and 90 MB. The shim is cheap because it runs in this
// package's init. If several packages are ready because their imports are initialized, Go
// initializes the one with the alphabetically first import path (language specification, "Program
// initialization"). This package and its imports need only the standard library, and most of k8s.io
// must wait for other packages. If Go initialized this package later, everything would still work,
// but the shim would start later and use more memory. A contract test checks the order of
// initialization.
//
// Where no host is possible (another operating system, a kube-apiserver with a foreign
// etcd, or a second kube-apiserver on the same etcd), init returns and the process
// becomes the server itself.
package shim

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// envtest calls the program by these names.
const (
	Etcd      = "etcd"
	APIServer = "kube-apiserver"
)

const (
	// PairVariable makes each server a separate process, if it is set to any value.
	PairVariable = "KOBOSHI_ENVTEST_PAIR"
	// KeepVariable lets the servers outlive the process that started them, if it is set to any value.
	KeepVariable = "KOBOSHI_ENVTEST_KEEP"
	// TidyVariable is set for a process that waits for the end of a suite. The value of
	// TidyVariable is the suite's process ID.
	TidyVariable = "KOBOSHI_ENVTEST_TIDY"
	// HostVariable is set to HostFile in the environment of a host.
	HostVariable = "KOBOSHI_ENVTEST_HOST"
	// HostFile is the file descriptor of the connection to the host's first shim.
	HostFile = 3
)

// A Request asks a host to run a server. The shim's open standard output and error are sent with
// the Request.
type Request struct {
	Name string   `json:"name"` // Etcd or APIServer
	Args []string `json:"args"` // without the name
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`  // the working directory
	Root string   `json:"root"` // identifies the file system; see root
}

const exitError = 1

// After the request, the shim and the host exchange these messages, one per line.
const (
	Accepted = "accepted" // sent by the host
	Refused  = "refused"  // sent by the host: the shim must become the server itself
	Exit     = "exit"     // sent by the host, with the exit code
	Stop     = "stop"     // sent by the shim
)

// Called returns the name that envtest called the program by, or "".
func Called() string {
	if name := filepath.Base(os.Args[0]); name == Etcd || name == APIServer {
		return name
	}
	return ""
}

func init() { //nolint:gochecknoinits // this package exists to run before all others
	name := Called()
	if name == "" || os.Getenv(HostVariable) != "" {
		return
	}
	if suite := os.Getenv(TidyVariable); suite != "" {
		pid, _ := strconv.Atoi(suite)
		tidy(name, pid)
		os.Exit(0)
	}
	// On a terminal, the program prints upstream's text, which takes a moment longer.
	if wantsHelp(os.Args[1:]) && !terminal(os.Stdout) {
		help(os.Stdout, name)
		os.Exit(0)
	}
	if os.Getenv(PairVariable) == "" && !AsksSomething(os.Args[1:]) {
		run(name)
	}
}

func wantsHelp(args []string) bool { return contains(args, "--help", "-help", "-h") }

// AsksSomething reports whether the arguments request the help or the version.
func AsksSomething(args []string) bool {
	return wantsHelp(args) || contains(args, "--version", "-version", "--version=true", "--version=raw")
}

func contains(args []string, any ...string) bool {
	for _, arg := range args {
		for _, a := range any {
			if arg == a {
				return true
			}
		}
	}
	return false
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

//go:embed etcd.flags kube-apiserver.flags
var flags embed.FS

// help lists the flags. envtest checks that the list has --unsafe-no-fsync but not
// --insecure-port.
func help(w io.Writer, name string) {
	list, err := flags.ReadFile(name + ".flags")
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(w, "Usage: %s [flags]\n\nThe flags are the same as upstream's. On a terminal, --help also describes each flag:\n\n", name)
	for line := range bytes.Lines(list) {
		_, _ = fmt.Fprintf(w, "      --%s", line)
	}
}

// Flag returns the value of a flag in any spelling that Go's flag packages accept: one
// dash or two, with = or as the next argument. The last one wins.
func Flag(args []string, name string) (value string) {
	for i, arg := range args {
		key, inline, found := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		switch {
		case !strings.HasPrefix(arg, "-") || key != name:
		case found:
			value = inline
		case i+1 < len(args):
			value = args[i+1]
		}
	}
	return value
}

// Port returns the port in the first of a list of http URLs, or 0. A host and its shims
// find each other by this port.
func Port(urls string) int {
	first, _, _ := strings.Cut(urls, ",")
	if !strings.HasPrefix(first, "http://") {
		return 0
	}
	port, err := strconv.ParseUint(strings.TrimRight(first[strings.LastIndex(first, ":")+1:], "/"), 10, 16)
	if err != nil {
		return 0
	}
	return int(port)
}

func request(name string) ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(Request{Name: name, Args: os.Args[1:], Env: os.Environ(), Dir: dir, Root: root()})
	return append(line, '\n'), err
}

// exitCode reads until the host closes the connection, and returns the exit code that the
// host has sent.
func exitCode(lines *bufio.Reader) int {
	code := 1
	for {
		line, err := lines.ReadString('\n')
		if n, found := strings.CutPrefix(strings.TrimSpace(line), Exit+" "); found {
			code, _ = strconv.Atoi(n)
		}
		if err != nil {
			return code
		}
	}
}
