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
		// Without it the kubelet insists on reading the kernel's log.
		string(features.KubeletInUserNamespace): true,
		// The end of a process is noticed when it happens, and not at the next
		// look, a second later at most. Since v1.37 an event only hastens that
		// look, and so a lost one costs what all cost without.
		string(features.EventedPLEG): true,
	}
}

// configuration is what differs from upstream's defaults, as a
// KubeletConfiguration.
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

		// Nobody but root has cgroups to give, and so nothing is enforced.
		CgroupsPerQOS:          new(bool),
		EnforceNodeAllocatable: []string{"none"},
		FailSwapOn:             new(bool),
		MakeIPTablesUtilChains: new(bool),

		// This machine is somebody's, and its disk may well be nearly full: that
		// is theirs to see to, and no reason to end Pods. There are no images to
		// collect either; 100 is upstream's word for never.
		EvictionHard:                map[string]string{},
		ImageGCHighThresholdPercent: new(int32(100)),
		SerializeImagePulls:         new(bool),
		// Nor is there a registry to spare, and who is held back by upstream's five
		// a second waits for ten seconds, in ImagePullBackOff.
		RegistryPullQPS: new(int32),

		// How often all Pods are looked at, and so how soon a changed ConfigMap
		// is in its volumes. Upstream's minute spares an API server far away.
		SyncFrequency: metav1.Duration{Duration: time.Second},

		// Programs ask this machine's resolver. Without an address the kubelet
		// would warn so with an Event for every Pod.
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

// reservePort takes a free port for as long as the process lives: upstream takes
// no listener, and a port that is merely free now is somebody else's a moment
// later. The socket is bound and does not listen, so that another socket may be
// bound there that also says SO_REUSEADDR, as those of Go do; the kernel gives
// the port to nobody who asks for any.
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
