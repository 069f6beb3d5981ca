// Package nodes runs the nodes of a plane and the Pods on them.
//
// All nodes except the one in local.go are simulated. KWOK's stage engine, used
// as a library, moves nodes and Pods through the states that a kubelet would
// report. The engine's stages, which are YAML data, specify the states. No
// containers run on simulated nodes. For requests that only a container could
// answer (logs, exec, attach, port-forward), an endpoint replies that the Pod
// is simulated; see endpoint.go.
package nodes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokclient "sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
	kwokclientset "sigs.k8s.io/kwok/pkg/utils/client"
)

const (
	// OwnedLabel marks the nodes that this package creates and removes.
	OwnedLabel = "koboshi.dev/node"
	// SimulatedAnnotation marks every node that the stage engine keeps alive. SimulatedAnnotation
	// is KWOK's own annotation, so that node manifests for KWOK also work here.
	SimulatedAnnotation = "kwok.x-k8s.io/node"

	// leaseSeconds is the duration of a kubelet's lease; see
	// pkg/kubelet/apis/config.
	leaseSeconds = 40
	parallelism  = 4
)

// capacity is the capacity of a simulated node. The number of Pods is the
// kubelet's default for --max-pods; the other values are the defaults of
// kwokctl.
var capacity = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("32"),
	corev1.ResourceMemory:           resource.MustParse("256Gi"),
	corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	corev1.ResourcePods:             resource.MustParse("110"),
}

// podCIDRs is divided among the nodes, which get 256 addresses each. podCIDRs overlaps neither the
// service range nor the networks that the machine is likely to use.
var podCIDRs = netip.MustParsePrefix("10.128.0.0/9")

// Max is the number of ranges of 256 addresses in podCIDRs.
const Max = 1 << 15

// Config configures the nodes.
type Config struct {
	// Client is the client configuration of the stage engine.
	Client *rest.Config
	// Kubeconfig is the path of a kubeconfig with the identity of Client. The
	// stage engine requires such a file.
	Kubeconfig string
	// KubeletPort is the loopback port of the endpoint that answers for the kubelets of
	// simulated nodes.
	KubeletPort int
	// HoldJobs keeps the Pods of Jobs running until the caller ends them; see EndOfJobPod.
	HoldJobs bool
	// Log receives the engine's log.
	Log io.Writer
}

// Run starts the stage engine, which applies the stages until ctx ends. Run
// returns once the engine is watching.
func Run(ctx context.Context, c Config) error {
	engine, err := c.engine()
	if err != nil {
		return fmt.Errorf("configuring nodes: %w", err)
	}
	ctx = kwoklog.NewContext(ctx, kwoklog.NewLogger(c.Log, kwoklog.LevelInfo))
	if err := engine.Start(ctx); err != nil {
		return fmt.Errorf("starting nodes: %w", err)
	}
	return nil
}

func (c Config) engine() (*controllers.Controller, error) {
	stages, err := stages(c.HoldJobs)
	if err != nil {
		return nil, err
	}
	clients, err := kwokclientset.NewClientset("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	client := rest.CopyConfig(c.Client)
	client.Wrap(func(next http.RoundTripper) http.RoundTripper { return endings{next} })
	typed, err := kubernetes.NewForConfig(client)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(c.Client)
	if err != nil {
		return nil, err
	}
	typedKwok, err := kwokclient.NewForConfig(c.Client)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(c.Client)
	if err != nil {
		return nil, err
	}
	return controllers.NewController(controllers.Config{
		Clock:                             clock.RealClock{},
		DynamicClient:                     dynamicClient,
		RESTClient:                        typed.CoreV1().RESTClient(),
		RESTMapper:                        restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)),
		TypedClient:                       typed,
		TypedKwokClient:                   typedKwok,
		ImpersonatingDynamicClient:        clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:          clients.ToImpersonatingTypedClient(),
		ManageNodesWithAnnotationSelector: SimulatedAnnotation + "=fake",
		CIDR:                              podCIDRs.String(),
		NodeIP:                            "127.0.0.1",
		NodePort:                          c.KubeletPort,
		LocalStages:                       stages,
		PodPlayStageParallelism:           parallelism,
		NodePlayStageParallelism:          parallelism,
		NodeLeaseDurationSeconds:          leaseSeconds,
		NodeLeaseParallelism:              parallelism,
		PodsOnNodeSyncParallelism:         parallelism,
		// The ID is the same at every start. With a different ID, the engine
		// would wait until the leases of the previous start expire, and Pods
		// would stay pending until then. The same ID is safe, because only one
		// process uses a store at a time.
		ID: "koboshi",
	})
}

func stages(holdJobs bool) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	texts := []string{
		nodefast.DefaultNodeInit,
		nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodDelete,
	}
	if !holdJobs {
		texts = append(texts, podComplete)
	}
	byKind := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, text := range texts {
		stage, err := readStage(text)
		if err != nil {
			return nil, err
		}
		byKind[stage.Spec.ResourceRef] = append(byKind[stage.Spec.ResourceRef], stage)
	}
	return byKind, nil
}

func readStage(text string) (*internalversion.Stage, error) {
	stage, err := kwokconfig.UnmarshalWithType[*internalversion.Stage](text)
	if err != nil {
		return nil, fmt.Errorf("reading stage: %w", err)
	}
	return stage, nil
}

// Ensure creates or removes simulated nodes until their number is count. The kubelet of the
// simulated nodes listens on kubeletPort. Ensure does not touch nodes that this package did not
// create.
func Ensure(ctx context.Context, client kubernetes.Interface, count, kubeletPort int) error {
	nodes := client.CoreV1().Nodes()
	existing, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: OwnedLabel + "=" + simulatedNode})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	known := map[string]bool{}
	for _, node := range existing.Items {
		known[node.Name] = true
	}
	for i := range count {
		node := newNode(i)
		if known[node.Name] {
			err = movePort(ctx, client, node.Name, kubeletPort)
		} else {
			_, err = nodes.Create(ctx, node, metav1.CreateOptions{})
		}
		if err != nil {
			return fmt.Errorf("registering node %s: %w", node.Name, err)
		}
		delete(known, node.Name)
	}
	for name := range known {
		if err := nodes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing node %s: %w", name, err)
		}
	}
	return nil
}

// movePort sets the kubelet's new port in a node that an earlier start created. The stage
// that usually sets the port runs only for nodes that are not Ready yet.
func movePort(ctx context.Context, client kubernetes.Interface, name string, port int) error {
	patch := fmt.Sprintf(`{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, port)
	_, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

func newNode(index int) *corev1.Node {
	name := "node-" + strconv.Itoa(index+1)
	cidr := podCIDR(index)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				OwnedLabel:               simulatedNode,
				corev1.LabelHostname:     name,
				corev1.LabelOSStable:     "linux",
				corev1.LabelArchStable:   runtime.GOARCH,
				corev1.LabelTopologyZone: "zone-" + strconv.Itoa(index%3+1),
			},
			Annotations: map[string]string{SimulatedAnnotation: "fake"},
		},
		Spec: corev1.NodeSpec{PodCIDR: cidr, PodCIDRs: []string{cidr}},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			NodeInfo:    corev1.NodeSystemInfo{Architecture: runtime.GOARCH, OperatingSystem: "linux", OSImage: "simulated"},
		},
	}
}

// podCIDR returns the range of 256 addresses that has this index in podCIDRs.
func podCIDR(index int) string {
	a := podCIDRs.Addr().As4()
	a[1] |= byte(index >> 8)
	a[2] = byte(index)
	return netip.PrefixFrom(netip.AddrFrom4(a), 24).String()
}
