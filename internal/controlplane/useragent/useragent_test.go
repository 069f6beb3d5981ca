package useragent

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

func TestAsNamesTheComponentAndNobodyElse(t *testing.T) {
	var agent string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { agent = r.UserAgent() }))
	t.Cleanup(server.Close)
	program := filepath.Base(os.Args[0])
	ours := rest.DefaultKubernetesUserAgent()
	theirs := "kube-scheduler" + ours[len(program):]
	for _, test := range []struct{ set, want string }{
		{"", theirs},   // set by the configuration
		{ours, theirs}, // client-go's default
		{ours + "/informers", theirs + "/informers"},
		{"curl/8", "curl/8"},
		{program + "-x/1", program + "-x/1"},
	} {
		original := &rest.Config{Host: server.URL}
		config := As("kube-scheduler", original)
		if test.set != "" {
			config.UserAgent = test.set
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if agent != test.want {
			t.Errorf("a client with the user agent %q sends %q, want %q", test.set, agent, test.want)
		}
		if original.UserAgent != "" || original.WrapTransport != nil {
			t.Error("As changed the configuration that it was given")
		}
	}
}
