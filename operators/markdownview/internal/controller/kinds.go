package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

// kindOf makes a child from its desired state, which is nil if the child should not exist.
func kindOf[O any, PO interface {
	*O
	client.Object
}, A any, PA interface {
	*A
	runtime.ApplyConfiguration
}](
	kind, name string, want PA, meta func(PA) *metav1ac.ObjectMetaApplyConfiguration,
	extract func(object PO, owner string) (PA, error),
) child {
	live := PO(new(O))
	c := child{kind: kind, name: name, live: live, applied: func() (runtime.ApplyConfiguration, error) {
		return extract(live, children.Owner)
	}}
	if want != nil {
		c.want, c.meta = want, meta(want)
	}
	return c
}

func deployment(name string, want *appsv1ac.DeploymentApplyConfiguration) child {
	return kindOf[appsv1.Deployment]("Deployment", name, want,
		func(a *appsv1ac.DeploymentApplyConfiguration) *metav1ac.ObjectMetaApplyConfiguration {
			return a.ObjectMetaApplyConfiguration
		}, appsv1ac.ExtractDeployment)
}

func service(name string, want *corev1ac.ServiceApplyConfiguration) child {
	return kindOf[corev1.Service]("Service", name, want,
		func(a *corev1ac.ServiceApplyConfiguration) *metav1ac.ObjectMetaApplyConfiguration {
			return a.ObjectMetaApplyConfiguration
		}, corev1ac.ExtractService)
}

// others returns the children that take no part in the rollout, except the HTTPRoute, because not
// every cluster has this kind.
func others(view *viewv1.MarkdownView) []child {
	name := children.ViewerName(view.Name)
	return []child{
		kindOf[policyv1.PodDisruptionBudget]("PodDisruptionBudget", name, children.PodDisruptionBudget(view),
			func(a *policyv1ac.PodDisruptionBudgetApplyConfiguration) *metav1ac.ObjectMetaApplyConfiguration {
				return a.ObjectMetaApplyConfiguration
			}, policyv1ac.ExtractPodDisruptionBudget),
		kindOf[networkingv1.NetworkPolicy]("NetworkPolicy", name, children.NetworkPolicy(view),
			func(a *networkingv1ac.NetworkPolicyApplyConfiguration) *metav1ac.ObjectMetaApplyConfiguration {
				return a.ObjectMetaApplyConfiguration
			}, networkingv1ac.ExtractNetworkPolicy),
		kindOf[networkingv1.Ingress]("Ingress", name, children.Ingress(view),
			func(a *networkingv1ac.IngressApplyConfiguration) *metav1ac.ObjectMetaApplyConfiguration {
				return a.ObjectMetaApplyConfiguration
			}, networkingv1ac.ExtractIngress),
	}
}

func httpRoute(view *viewv1.MarkdownView) child {
	return kindOf[gatewayv1.HTTPRoute]("HTTPRoute", children.ViewerName(view.Name), children.HTTPRoute(view),
		func(a *gatewayv1ac.HTTPRouteApplyConfiguration) *metav1ac.ObjectMetaApplyConfiguration {
			return a.ObjectMetaApplyConfiguration
		}, gatewayv1ac.ExtractHTTPRoute)
}

// contentMap returns a ConfigMap with content. Only its metadata is compared, because the
// ConfigMap is immutable and its name identifies the content.
func contentMap(want *corev1ac.ConfigMapApplyConfiguration) child {
	live := newContentMeta()
	return child{
		kind: "ConfigMap", name: *want.Name, want: want, meta: want.ObjectMetaApplyConfiguration, live: live,
		applied: func() (runtime.ApplyConfiguration, error) {
			same := *want
			meta := *want.ObjectMetaApplyConfiguration
			meta.Labels = map[string]string{}
			for key := range want.Labels {
				if value, ok := live.Labels[key]; ok {
					meta.Labels[key] = value
				}
			}
			same.ObjectMetaApplyConfiguration = &meta
			return &same, nil
		},
	}
}

func newContentMeta() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}
