package lab

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/check/home"
	"github.com/koboshi-dev/koboshi/internal/check/process/view"
)

// accountFolder is the folder in which the libraries of all languages look for the service account.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// makeViews makes the view of each controller instance. The view shows the files of a service
// account in accountFolder, as in a Pod; the kubeconfig of the proxy in the user's ~/.kube; and the
// volumes of the Pod at their paths. The view hides the user's other credentials.
func (l *Lab) makeViews() {
	for slot := range slots {
		if l.views[slot], l.noView = l.makeView(slot); l.noView != nil {
			l.closeViews()
			return
		}
	}
}

func (l *Lab) makeView(slot int) (*view.View, error) {
	staging, hidden, empty := l.path("staging"), l.path("hidden"), l.path("hidden-file")
	for _, dir := range []string{staging, hidden, l.account(slot)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return nil, err
	}
	// The kubeconfig is written at each start.
	if err := home.Make(l.home(slot), []byte{}); err != nil {
		return nil, err
	}
	mounts := []view.Mount{{Source: l.account(slot), Target: accountFolder}}
	for _, path := range home.Credentials() {
		source := hidden
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			source = empty
		}
		if filepath.Base(path) == ".kube" {
			source = filepath.Dir(home.Kubeconfig(l.home(slot)))
		}
		mounts = append(mounts, view.Mount{Source: source, Target: path})
	}
	return view.New(staging, append(mounts, l.volumeMounts(slot)...))
}

func (l *Lab) closeViews() {
	for slot, v := range l.views {
		if v != nil {
			_ = v.Close()
		}
		l.views[slot] = nil
	}
}

func (l *Lab) path(name string) string { return filepath.Join(l.config.Dir, name) }

// account returns the folder that one controller instance sees as accountFolder.
func (l *Lab) account(slot int) string { return l.path(fmt.Sprintf("account-%d", slot)) }

// inCluster writes the files of the service account, and returns the variables of in-cluster
// configuration. Without views it does nothing, because programs prefer these variables to
// other ways to find the cluster.
func (l *Lab) inCluster(slot int, config *rest.Config) ([]string, error) {
	if l.views[slot] == nil {
		return nil, nil
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the proxy's kubeconfig: %w", err)
	}
	host, port, err := net.SplitHostPort(server.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the proxy's kubeconfig: %w", err)
	}
	namespace := l.subject(slot).Identity.Namespace
	if namespace == "" {
		namespace = "default"
	}
	for name, content := range map[string]string{"token": config.BearerToken, "ca.crt": string(config.CAData), "namespace": namespace} {
		if err := os.WriteFile(filepath.Join(l.account(slot), name), []byte(content), 0o600); err != nil {
			return nil, fmt.Errorf("writing the service account's files: %w", err)
		}
	}
	return []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, nil
}

// withoutView describes what does not work if the system allows no views, or returns "".
func (l *Lab) withoutView() string {
	switch {
	case l.noView == nil:
		return ""
	case errors.Is(l.noView, view.ErrUnavailable):
		return fmt.Sprintf("the controller cannot use in-cluster configuration here, because %v; KUBECONFIG and ~/.kube/config work", l.noView)
	}
	return fmt.Sprintf("the controller cannot use in-cluster configuration here, because the system forbids user namespaces (%v); KUBECONFIG and ~/.kube/config work", l.noView)
}
