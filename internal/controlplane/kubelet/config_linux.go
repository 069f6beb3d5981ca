package kubelet

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
)

// maxImages is upstream's default for --node-status-max-images.
const maxImages = 50

// gates returns the feature gates that differ from upstream's defaults.
func gates() map[string]bool {
	return map[string]bool{
		// Without this gate, the kubelet fails if it cannot read the kernel
		// log.
		string(features.KubeletInUserNamespace): true,
		// With this gate, the kubelet notices the end of a process immediately, and not only at its
		// next relist up to a second later. Since v1.37, an event only triggers an earlier relist,
		// so a lost event is no worse than running without events.
		string(features.EventedPLEG): true,
	}
}

// configuration returns upstream's default KubeletConfiguration with the
// changes that are needed here.
func (c Config) configuration() (*kubeletconfig.KubeletConfiguration, error) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates()); err != nil {
		return nil, fmt.Errorf("setting feature gates: %w", err)
	}
	port, err := reservePort()
	if err != nil {
		return nil, err
	}
	versioned := &v1beta1.KubeletConfiguration{
		Address:    "127.0.0.1",
		Port:       int32(port),
		PodLogsDir: c.logs(),

		// Only root can delegate cgroups, so no resource limits are enforced.
		CgroupsPerQOS:          new(bool),
		EnforceNodeAllocatable: []string{"none"},
		FailSwapOn:             new(bool),
		MakeIPTablesUtilChains: new(bool),

		// A nearly full disk is the concern of the user of this machine, and no
		// reason to evict Pods. Images are not collected, because there are
		// none; a threshold of 100 means never.
		EvictionHard:                map[string]string{},
		ImageGCHighThresholdPercent: new(int32(100)),
		SerializeImagePulls:         new(bool),
		// There is no registry to protect, and upstream's limit of five pulls a second would make
		// every further Pod wait ten seconds in ImagePullBackOff.
		RegistryPullQPS: new(int32),

		// SyncFrequency is the interval between syncs of all Pods, and so also the delay until a
		// changed ConfigMap appears in its volumes. Upstream's default of one minute protects a
		// remote API server.
		SyncFrequency: metav1.Duration{Duration: time.Second},

		// Programs use this machine's resolver, but without an address here,
		// the kubelet would record a warning Event for every Pod.
		ClusterDNS:     []string{"10.0.0.10"},
		ClusterDomain:  "cluster.local",
		ResolverConfig: new(string),
	}
	scheme, _, err := kubeletscheme.NewSchemeAndCodecs()
	if err != nil {
		return nil, err
	}
	scheme.Default(versioned)
	config := &kubeletconfig.KubeletConfiguration{}
	if err := scheme.Convert(versioned, config, nil); err != nil {
		return nil, fmt.Errorf("configuring the kubelet: %w", err)
	}
	return config, nil
}

// reservePort takes a free port for the lifetime of the process. The reservation is needed because
// upstream accepts no listener, and a port that is free now may be taken a moment later. The socket
// is bound but does not listen. The kernel therefore never assigns its port automatically, but
// another socket with SO_REUSEADDR, which Go sets on its sockets, can still be bound to the port.
func reservePort() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		return 0, fmt.Errorf("reserving a port for the kubelet: %w", err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("reserving a port for the kubelet: %w", err)
	}
	return address.(*unix.SockaddrInet4).Port, nil
}
