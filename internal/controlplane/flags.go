package controlplane

import (
	"net"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

const serviceCIDR = "10.0.0.0/24" // the same as in envtest

// serviceIP is the first address of serviceCIDR, which upstream assigns to the
// Service "kubernetes".
var serviceIP = net.IPv4(10, 0, 0, 1)

// apiserverFlags returns the flags of kube-apiserver. For a plane without
// service accounts, the flags are like envtest's; otherwise, they are like
// kubeadm's.
func (p *Plane) apiserverFlags() []string {
	flags := []string{
		"--etcd-servers=" + strings.Join(p.etcdServers, ","),
		"--cert-dir=" + string(p.certs),
		"--tls-cert-file=" + p.certs.Path("apiserver.crt"),
		"--tls-private-key-file=" + p.certs.Path("apiserver.key"),
		"--client-ca-file=" + p.certs.Path("ca.crt"),
		"--requestheader-client-ca-file=" + p.certs.Path("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.certs.Path("front-proxy-client.crt"),
		"--proxy-client-key-file=" + p.certs.Path("front-proxy-client.key"),
		"--kubelet-certificate-authority=" + p.certs.Path("ca.crt"),
		"--kubelet-client-certificate=" + p.certs.Path("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + p.certs.Path("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.certs.Path("sa.pub"),
		"--service-account-signing-key-file=" + p.certs.Path("sa.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged=true",
	}
	// Together, these flags give a real kubelet exactly the rights that it
	// needs.
	if p.opts.Profile.RunsServiceAccounts() || len(p.opts.Programs) > 0 {
		flags = append(flags, "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction")
	} else {
		flags = append(flags, "--authorization-mode=RBAC")
	}
	if !p.opts.Profile.RunsServiceAccounts() {
		// The admission plugin ServiceAccount requires the default service account, which no
		// controller creates here.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	// Upstream keeps the emulated version in one registry for the process, so this flag
	// also applies to the other components.
	if p.opts.Kubernetes != "" {
		flags = append(flags, kubeversion.EmulationFlag(p.opts.Kubernetes))
	}
	flags = append(flags, p.opts.Etcd.flags()...)
	return override(flags, p.opts.APIServerFlags)
}

// override drops from flags each flag that given also sets, and appends given. If a flag
// with a list value occurred twice, upstream would combine the values.
func override(flags, given []string) []string {
	name := func(flag string) string {
		name, _, _ := strings.Cut(flag, "=")
		return strings.ReplaceAll(name, "_", "-")
	}
	kept := slices.DeleteFunc(flags, func(flag string) bool {
		return slices.ContainsFunc(given, func(g string) bool { return name(g) == name(flag) })
	})
	return append(kept, given...)
}
