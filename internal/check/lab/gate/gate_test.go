package gate

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
)

// opened returns an open gate to a server that answers each request with "hello".
func opened(t *testing.T) (*Gate, *httptest.Server) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(server.Close)
	g, err := New(t.Context(), server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Stop)
	return g, server
}

func get(g *Gate, server *httptest.Server) (string, error) {
	resp, err := server.Client().Get("https://" + g.Address())
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestAClosedGateRefusesConnectionsUntilItIsOpenedAtTheSameAddress(t *testing.T) {
	g, server := opened(t)
	address := g.Address()
	if said, err := get(g, server); said != "hello" || err != nil {
		t.Fatalf("through an open gate: %q, %v", said, err)
	}
	g.Close()
	if said, err := get(g, server); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("through a closed gate: %q, %v", said, err)
	}
	if err := g.Open(); err != nil {
		t.Fatal(err)
	}
	if said, err := get(g, server); said != "hello" || err != nil || g.Address() != address {
		t.Errorf("through a gate that was opened again at %s: %q, %v", g.Address(), said, err)
	}
}

func TestClosingAGateBreaksItsConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g, err := New(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	client, err := net.Dial("tcp", g.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := io.WriteString(server, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(client).ReadString('\n'); said != "hello\n" || err != nil {
		t.Fatalf("the client reads %q, %v", said, err)
	}
	g.Close()
	if n, err := client.Read(make([]byte, 1)); err == nil {
		t.Errorf("the client reads %d bytes of a broken connection", n)
	}
	if n, err := server.Read(make([]byte, 1)); err == nil {
		t.Errorf("the server reads %d bytes of a broken connection", n)
	}
}

func TestAStoppedGateStaysClosed(t *testing.T) {
	g, server := opened(t)
	g.Stop()
	if err := g.Open(); err != nil {
		t.Fatal(err)
	}
	if _, err := get(g, server); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("through a stopped gate: %v", err)
	}
	(*Gate)(nil).Stop()
}
