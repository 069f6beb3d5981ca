package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletconfigruntime "k8s.io/kubernetes/pkg/kubelet/kubeletconfig"
	"k8s.io/kubernetes/pkg/kubelet/server"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/util/oom"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"

	"github.com/koboshi-dev/koboshi/internal/controlplane/useragent"
)

// A node is an assembled kubelet.
type node struct {
	kubelet *kubelet.Kubelet
	config  *kubeletconfig.KubeletConfiguration
	deps    *kubelet.Dependencies
}

// newNode does the same as upstream's app.RunKubelet, but does not create unix
// sockets: their paths would be too long in most folders, and nothing uses
// them.
func (c Config) newNode(ctx context.Context, r containerRuntime) (*node, error) {
	config, err := c.configuration()
	if err != nil {
		return nil, err
	}
	deps, err := c.dependencies(ctx, r)
	if err != nil {
		return nil, err
	}
	k, err := kubelet.NewMainKubelet(ctx, config, deps,
		&kubeletconfigruntime.ContainerRuntimeOptions{},
		c.NodeName, types.NodeName(c.NodeName),
		nil,        // no --node-ip, which may not be a loopback address
		"",         // provider ID
		"external", // cloud provider; with external, the plane sets the addresses
		c.Root, c.Root, config.PodLogsDir,
		"", "", // credential providers
		true,     // register the node, which here only completes the labels
		nil, nil, // taints, unsafe sysctls
		"", false, false, // path of the mounter, memcg notification, ignoring evictions
		metav1.Duration{}, 1, -1, // keep one dead instance of each container, for logs --previous
		nil, // labels
		maxImages,
		false) // seccomp by default
	if err != nil {
		return nil, fmt.Errorf("assembling the kubelet: %w", err)
	}
	return &node{kubelet: k, config: config, deps: deps}, nil
}

func (n *node) run(ctx context.Context) {
	n.kubelet.BirthCry()
	n.kubelet.StartGarbageCollection(ctx)
	go n.kubelet.ListenAndServe(ctx, n.config, n.deps.TLSConfig, n.deps.Auth, n.deps.TracerProvider)
	n.kubelet.Run(ctx, n.deps.PodConfig.Updates())
}

func (c Config) dependencies(ctx context.Context, r containerRuntime) (*kubelet.Dependencies, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, err
	}
	heartbeat, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, err
	}
	auth, err := c.auth()
	if err != nil {
		return nil, err
	}
	mounter := mount.New("")
	machine := machine{root: c.Root}
	return &kubelet.Dependencies{
		Auth:                      auth,
		CAdvisorInterface:         machine,
		ContainerManager:          newContainerManager(machine),
		EventClient:               clientset.CoreV1(),
		HeartbeatClient:           heartbeat,
		OnHeartbeatFailure:        func() {},
		HostUtil:                  hostutil.NewHostUtil(),
		KubeClient:                clientset,
		Mounter:                   mounter,
		OOMAdjuster:               oom.NewFakeOOMAdjuster(),
		OSInterface:               guardedOS{root: c.Root},
		PodStartupLatencyTracker:  kubeletutil.NewPodStartupLatencyTracker(),
		NodeStartupLatencyTracker: kubeletutil.NewNodeStartupLatencyTracker(klog.FromContext(ctx)),
		Recorder:                  c.recorder(ctx, clientset),
		RemoteImageService:        r,
		RemoteRuntimeService:      c.tellAPIServer(untimed{r}),
		Subpather:                 subpath.New(mounter),
		TLSOptions: &server.TLSOptions{
			MinVersion:   tls.VersionTLS12,
			CertFile:     c.ServingCert,
			KeyFile:      c.ServingKey,
			ClientCAFile: c.ClientCA,
		},
		TracerProvider: tracer(),
		VolumePlugins:  c.volumePlugins(),
	}, nil
}

func tracer() trace.TracerProvider { return noop.NewTracerProvider() }

// client returns the configuration of a client with the identity of the node.
// The API server is on this machine and protects itself, so the client does
// not limit its requests.
func (c Config) client() (*rest.Config, error) {
	client, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the node: %w", err)
	}
	client.UserAgent = useragent.Of(Name)
	client.ContentType = runtime.ContentTypeProtobuf
	client.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client.QPS = -1
	return client, nil
}

func (c Config) recorder(ctx context.Context, client kubernetes.Interface) record.EventRecorderLogger {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: Name, Host: c.NodeName})
}

func (c Config) logs() string { return filepath.Join(c.Root, "logs") }
