package kubelet

import (
	"net"
	"strconv"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/eviction"
)

// This test fails if upstream treats an empty value as unset and uses its
// default instead.
func TestWhatIsSwitchedOffIsOff(t *testing.T) {
	t.Parallel()
	config, err := Config{Root: t.TempDir()}.configuration()
	if err != nil {
		t.Fatal(err)
	}
	thresholds, err := eviction.ParseThresholdConfig(config.EnforceNodeAllocatable, config.EvictionHard, config.EvictionSoft, config.EvictionSoftGracePeriod, config.EvictionMinimumReclaim)
	if err != nil || len(thresholds) > 0 {
		t.Errorf("Pods are evicted at %v (%v)", thresholds, err)
	}
	if config.ImageGCHighThresholdPercent != 100 || config.ImageMaximumGCAge.Duration != 0 {
		t.Errorf("images are collected at %d %% and %s", config.ImageGCHighThresholdPercent, config.ImageMaximumGCAge.Duration)
	}
	if config.CgroupsPerQOS || config.FailSwapOn || config.MakeIPTablesUtilChains || config.SerializeImagePulls {
		t.Errorf("something that needs root is on: %+v", config)
	}
	if config.RegistryPullQPS != 0 {
		t.Errorf("if many Pods start at once, only %d can start per second", config.RegistryPullQPS)
	}
	if config.ReadOnlyPort != 0 || config.Address != "127.0.0.1" || config.Port == 0 {
		t.Errorf("serves at %s:%d, without authentication at %d", config.Address, config.Port, config.ReadOnlyPort)
	}
}

func TestAReservedPortCanBeListenedAtAndIsGivenToNobodyElse(t *testing.T) {
	t.Parallel()
	port, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	// 2000 ports are a large part of the ports that the kernel assigns.
	for range 2000 {
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Close() }()
		if other.Addr().(*net.TCPAddr).Port == port {
			t.Fatal("the kernel gave the port to another socket")
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
