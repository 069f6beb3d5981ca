package cri

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// freePort returns a TCP port on which no process listens, at any address, and reserves it
// until the test ends: a socket is bound to it but does not listen. The kernel therefore
// never assigns the port automatically, but another socket with SO_REUSEADDR, which Go sets
// on its listeners, can be bound to it.
func freePort(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{}); err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return address.(*unix.SockaddrInet4).Port
}

// greeting returns the first text that the program at the address sends.
func greeting(t *testing.T, network, address string) string {
	t.Helper()
	line, err := greet(network, address)
	if err != nil {
		t.Error(err)
	}
	return line
}

// greet is like greeting, but returns the error. Use greet for addresses at which there may be no
// listener.
func greet(network, address string) (string, error) {
	conn, err := net.DialTimeout(network, address, limit)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(limit))
	if network == "udp" {
		_, _ = conn.Write([]byte("x"))
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

func TestPodsListenOnTheSamePortEachAtItsAddress(t *testing.T) {
	p := newPlane(t)
	for _, test := range []struct{ network, host, dial string }{
		{"tcp", "", "tcp"}, {"tcp", "0.0.0.0", "tcp"}, {"tcp4", "", "tcp"}, {"tcp", "[::]", "tcp"},
		{"udp", "", "udp"}, {"udp4", "0.0.0.0", "udp"},
	} {
		port := freePort(t)
		listen := fmt.Sprintf("%s:%d", test.host, port)
		one, two := p.pod(), p.pod()
		for _, pod := range []*pod{one, two} {
			b := pod.start(containerConfig("listen", test.network, listen))
			b.says(fmt.Sprintf("listening on %s:%d", pod.address(), port))
			if got := greeting(t, test.dial, fmt.Sprintf("%s:%d", pod.address(), port)); got != pod.config.GetHostname() {
				t.Errorf("%s %s: %s answers at the address of %s", test.network, listen, got, pod.config.GetHostname())
			}
		}
		if test.dial == "tcp" {
			// A process outside the test may listen on this port of 127.0.0.1.
			name, _ := greet("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if name == one.config.GetHostname() || name == two.config.GetHostname() {
				t.Errorf("%s %s: %s listens on all addresses", test.network, listen, name)
			}
		}
		// A Pod cannot use the same port twice.
		out, status := one.run(containerConfig("listen", test.network, listen))
		if status.GetExitCode() == 0 || !strings.Contains(out, "address already in use") {
			t.Errorf("%s %s twice in a Pod: %s", test.network, listen, out)
		}
		for _, pod := range []*pod{one, two} {
			if err := p.RemovePodSandbox(t.Context(), pod.id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLocalhostIsThePodWhereOneOfItsProgramsListens(t *testing.T) {
	p := newPlane(t)
	port := freePort(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0") // a server of this machine
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("the machine\n"))
			_ = conn.Close()
		}
	}()
	pods := []*pod{p.pod(), p.pod()}
	for _, pod := range pods {
		pod.start(containerConfig("listen", "tcp", fmt.Sprintf(":%d", port))).says("listening on")
	}
	for _, pod := range pods {
		for _, address := range []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf(":%d", port), fmt.Sprintf("localhost:%d", port), fmt.Sprintf("%s:%d", pod.address(), port)} {
			if out, _ := pod.run(containerConfig("greet", address)); out != pod.config.GetHostname()+"\n" {
				t.Errorf("at %s, %s finds %s", address, pod.config.GetHostname(), out)
			}
		}
	}
	if out, _ := pods[0].run(containerConfig("greet", listener.Addr().String())); out != "the machine\n" {
		t.Errorf("a server of this machine is %s", out)
	}
	other := p.pod()
	if out, status := other.run(containerConfig("greet", fmt.Sprintf("127.0.0.1:%d", port))); status.GetExitCode() == 0 {
		t.Errorf("a Pod that does not listen finds %s", out)
	}
}

func TestOtherBindsAreLeftAlone(t *testing.T) {
	p := newPlane(t)
	pod, port := p.pod(), freePort(t)
	for _, test := range []struct{ network, address, want string }{
		{"tcp", fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", port)},
		{"tcp6", fmt.Sprintf("[::]:%d", port), fmt.Sprintf("[::]:%d", port)}, // IPV6_V6ONLY
		{"tcp", ":0", pod.address() + ":"},                                   // a port of the kernel's choice
		{"udp4", ":0", "0.0.0.0:"},                                           // a client
		{"unix", p.volumes + "/socket", p.volumes + "/socket"},
	} {
		b := pod.start(containerConfig("listen", test.network, test.address))
		b.says("listening on " + test.want)
		if err := p.RemoveContainer(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := pod.run(containerConfig("twice", fmt.Sprint(port)))
	if out != "second: invalid argument\n" {
		t.Errorf("binding a bound socket: %s", out)
	}
}

func TestHostNetworkListensWhereItSays(t *testing.T) {
	p := newPlane(t)
	pod, port := p.pod(func(c *runtimeapi.PodSandboxConfig) {
		c.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
	}), freePort(t)
	b := pod.start(containerConfig("listen", "tcp4", fmt.Sprintf(":%d", port)))
	b.says(fmt.Sprintf("listening on 0.0.0.0:%d", port))
}

func TestAddressesAreReusedLate(t *testing.T) {
	p := newPlane(t)
	first := p.pod()
	address := first.address()
	if err := p.RemovePodSandbox(t.Context(), first.id); err != nil {
		t.Fatal(err)
	}
	if got := p.pod().address(); got == address {
		t.Errorf("the next Pod got the released address %s", got)
	}
}

func TestSubnetsAreClaimedOnce(t *testing.T) {
	var released, next netip.Prefix
	// Between two claims of this test, another process may claim or release a subnet.
	for range 10 {
		if released, next = claimAgain(t); next == released {
			return
		}
	}
	t.Errorf("after %s was released, the next claim got %s", released, next)
}

// claimAgain claims two subnets, releases the first one, and makes the next claim.
func claimAgain(t *testing.T) (released, next netip.Prefix) {
	t.Helper()
	one, claimOne, err := ClaimSubnet()
	if err != nil {
		t.Fatal(err)
	}
	two, claimTwo, err := ClaimSubnet()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = claimTwo.Close() }()
	if one == two {
		t.Errorf("both claims got %s", one)
	}
	_ = claimOne.Close()
	again, claimNext, err := ClaimSubnet()
	if err != nil {
		t.Fatal(err)
	}
	_ = claimNext.Close()
	return one, again
}
