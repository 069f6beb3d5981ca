package controllers

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	sched "k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedoptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

// RunScheduler runs kube-scheduler with its default configuration until ctx ends. RunScheduler does
// the same as upstream's Setup, but its client has the user agent of the component. If there are
// programs, a plugin separates their Pods from all others; see LocalPrograms.
func RunScheduler(ctx context.Context, client *rest.Config, kubeconfig string, run ...programs.Program) error {
	opts := schedoptions.NewOptions()
	if err := parse(*opts.Flags, []string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0"}); err != nil {
		return fmt.Errorf("configuring kube-scheduler: %w", err)
	}
	defaults, err := latest.Default()
	if err != nil {
		return fmt.Errorf("configuring kube-scheduler: %w", err)
	}
	plugins := separate(defaults, run)
	defaults.ClientConnection.QPS, defaults.ClientConnection.Burst = clientQPS, clientBurst
	opts.ComponentConfig = defaults
	cfg, err := opts.Config(ctx)
	if err != nil {
		return fmt.Errorf("configuring kube-scheduler: %w", err)
	}
	as(cfg.KubeConfig, client)
	if cfg.Client, err = kubernetes.NewForConfig(cfg.KubeConfig); err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(cfg.KubeConfig)
	if err != nil {
		return err
	}
	informerName, err := cache.NewInformerName("kube-scheduler")
	if err != nil {
		return fmt.Errorf("a kube-scheduler already runs in this process: %w", err)
	}
	cfg.EventBroadcaster = events.NewEventBroadcasterAdapterWithContext(ctx, cfg.Client)
	cfg.InformerFactory = scheduler.NewInformerFactory(cfg.Client, 0, informerName)
	cfg.DynInformerFactory = dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	cc := cfg.Complete()
	s, err := scheduler.New(ctx, cc.Client, cc.InformerFactory, cc.DynInformerFactory,
		func(name string) events.EventRecorderLogger { return cc.EventBroadcaster.NewRecorder(name) },
		scheduler.WithComponentConfigVersion(cc.ComponentConfig.APIVersion),
		scheduler.WithKubeConfig(cc.KubeConfig),
		scheduler.WithProfiles(cc.ComponentConfig.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(plugins),
		scheduler.WithPercentageOfNodesToScore(cc.ComponentConfig.PercentageOfNodesToScore),
		scheduler.WithPodMaxBackoffSeconds(cc.ComponentConfig.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(cc.ComponentConfig.PodInitialBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(cc.PodMaxInUnschedulablePodsDuration),
		scheduler.WithParallelism(cc.ComponentConfig.Parallelism),
	)
	if err != nil {
		return fmt.Errorf("configuring kube-scheduler: %w", err)
	}
	return stopped(ctx, sched.Run(ctx, &cc, s))
}
