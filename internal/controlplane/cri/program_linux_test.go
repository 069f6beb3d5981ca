package cri

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/terminal"
)

// programVerb makes the test binary act as the program of a container.
const programVerb = "program"

// program runs the command in args. Several commands are separated by ";".
func program(args []string) int {
	for {
		command, rest, more := cut(args, ";")
		if code := do(command); code != 0 || !more {
			return code
		}
		args = rest
	}
}

func cut(args []string, at string) (before, after []string, found bool) {
	for i, a := range args {
		if a == at {
			return args[:i], args[i+1:], true
		}
	}
	return args, nil, false
}

func do(args []string) int {
	var err error
	switch name, args := args[0], args[1:]; name {
	case "exit":
		code, _ := strconv.Atoi(args[0])
		return code
	case "print":
		_, err = fmt.Fprint(os.Stdout, strings.Join(args, " "))
	case "complain":
		_, err = fmt.Fprint(os.Stderr, strings.Join(args, " "))
	case "env":
		_, err = fmt.Fprintln(os.Stdout, strings.Join(os.Environ(), "\n"))
	case "who":
		err = who()
	case "cat":
		err = cat(args)
	case "list":
		err = list(args[0])
	case "write":
		err = os.WriteFile(args[0], []byte(args[1]), 0o600)
	case "block": // with Go's default signal handling: SIGTERM and SIGKILL end the program
		<-time.After(time.Hour)
	case "ignore":
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stdout, "ready")
		<-time.After(time.Hour)
	case "await":
		err = await(args)
	case "spawn":
		err = exec.Command(os.Args[0], append([]string{programVerb}, args...)...).Start()
	case "listen":
		err = listen(args[0], args[1])
	case "greet": // prints what the server at the address says
		var line string
		line, err = greet("tcp", args[0])
		_, _ = fmt.Fprintln(os.Stdout, line)
	case "twice":
		err = bindTwice(args[0])
	case "echo":
		_, err = io.Copy(os.Stdout, os.Stdin)
	case "say": // a prompt and an answer
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Fprintf(os.Stdout, "hello %s", line)
	case "size":
		err = size(false)
	case "sized": // prints the size of the terminal once it has one
		err = size(true)
	case "terminal": // prints the name of the terminal, and whether the program may open another one
		err = terminals()
	case "file": // prints whether the file descriptor is open
		number, _ := strconv.Atoi(args[0])
		var stat unix.Stat_t
		_, err = fmt.Fprintln(os.Stdout, unix.Fstat(number, &stat))
	case "signal1":
		err = syscall.Kill(1, syscall.SIGTERM)
	case "burn":
		var used unix.Rusage
		for used.Utime.Nano()+used.Stime.Nano() < (200 * time.Millisecond).Nanoseconds() {
			_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
		}
		fmt.Fprintln(os.Stdout, "burnt")
	default:
		err = errors.New("unknown command " + name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func who() error {
	host, _ := os.Hostname()
	dir, _ := os.Getwd()
	self, err := os.Readlink("/proc/self")
	status, _ := os.ReadFile("/proc/self/status")
	var caps []string
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "CapEff") || strings.HasPrefix(line, "CapBnd") || strings.HasPrefix(line, "NoNewPrivs") {
			caps = append(caps, strings.Join(strings.Fields(line), ""))
		}
	}
	fmt.Fprintf(os.Stdout, "pid=%d proc=%s uid=%d gid=%d host=%s dir=%s %s\n", os.Getpid(), self, os.Getuid(), os.Getgid(), host, dir, strings.Join(caps, " "))
	return err
}

func cat(paths []string) error {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stdout, "%s", text)
	}
	return nil
}

func list(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		fmt.Fprintln(os.Stdout, e.Name())
	}
	return err
}

func await(args []string) error {
	wanted := unix.SignalNum(args[0])
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, wanted)
	fmt.Fprintln(os.Stdout, "ready")
	<-signals
	fmt.Fprintln(os.Stdout, "got", args[0])
	return nil
}

// listen answers each connection or packet with the host name.
func listen(network, address string) error {
	host, _ := os.Hostname()
	if strings.HasPrefix(network, "udp") {
		conn, err := net.ListenPacket(network, address)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "listening on", conn.LocalAddr())
		for buffer := make([]byte, 100); ; {
			_, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return err
			}
			_, _ = conn.WriteTo([]byte(host+"\n"), from)
		}
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "listening on", listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(conn, host)
		_, _ = io.Copy(conn, conn)
		_ = conn.Close()
	}
}

// bindTwice prints the result of a socket's second bind.
func bindTwice(port string) error {
	number, _ := strconv.Atoi(port)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	// The test keeps the port bound; see freePort.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: number}); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "second:", unix.Bind(fd, &unix.SockaddrInet4{Port: number + 1}))
	return nil
}

func size(wait bool) error {
	for {
		window, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
		if err != nil {
			return err
		}
		if window.Col > 0 || !wait {
			fmt.Fprintf(os.Stdout, "%dx%d\n", window.Col, window.Row)
			return nil
		}
		<-time.After(time.Millisecond)
	}
}

func terminals() error {
	name, err := os.Readlink("/proc/self/fd/0")
	if err != nil {
		return err
	}
	if _, err := os.Stat(name); err != nil {
		return err
	}
	controlling, other, err := terminal.Open()
	if err != nil {
		return err
	}
	defer func() { _, _ = controlling.Close(), other.Close() }()
	_, err = fmt.Fprintf(os.Stdout, "on %s, could open another\n", name)
	return err
}
