package freeport

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// closed returns a port that is kept closed although a connection to it is still open.
func closed(t *testing.T) (c *Closed, address string) {
	t.Helper()
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err = KeepClosed(port(l)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Release)
	return c, address
}

func TestAPortThatIsKeptClosedRefusesConnectionsAndCannotBeTaken(t *testing.T) {
	c, address := closed(t)
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a connection ended with %v, want a refusal", err)
	}
	_, wildcard, _ := net.SplitHostPort(address)
	for _, taken := range []string{address, ":" + wildcard} {
		if l, err := net.Listen("tcp", taken); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("listening on %s ended with %v %v, want a port in use", taken, l, err)
		}
	}
	l, err := c.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if conn, err := net.Dial("tcp", address); err != nil {
		t.Errorf("the port is not open again: %v", err)
	} else {
		_ = conn.Close()
	}
}

func TestAPortThatIsNoLongerKeptClosedIsFree(t *testing.T) {
	c, address := closed(t)
	c.Release()
	c.Release() // has no effect
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

func TestAPortThatIsOpenCannotBeKeptClosed(t *testing.T) {
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := KeepClosed(port(l)); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("KeepClosed ended with %v, want a port in use", err)
	}
}
