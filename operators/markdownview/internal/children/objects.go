package children

import (
	"math"
	"strings"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

const (
	servicePort = 80
	// Hold is the value of minReadySeconds while the Service selects the old viewers. Hold never
	// expires in practice, so the old viewers stay until the operator releases them.
	Hold = 10 * 365 * 24 * 60 * 60
)

// ConfigMaps returns the ConfigMaps with the content.
func ConfigMaps(s *Site) []*corev1ac.ConfigMapApplyConfiguration {
	var all []*corev1ac.ConfigMapApplyConfiguration
	for n, pack := range s.Packs {
		cm := corev1ac.ConfigMap(ContentName(s.View.Name, s.Hash, n), s.View.Namespace).WithImmutable(true)
		meta(cm.ObjectMetaApplyConfiguration, s.View, nil)
		cm.Labels[ContentLabel] = s.Hash
		for _, item := range pack.Items {
			if utf8.Valid(item.File.Data) {
				cm.WithData(map[string]string{item.Key: string(item.File.Data)})
			} else {
				cm.WithBinaryData(map[string][]byte{item.Key: item.File.Data})
			}
		}
		all = append(all, cm)
	}
	return all
}

// Deployment returns the Deployment of the viewers. If held is true, no viewers of older
// templates are removed, no matter how many new viewers are Ready.
func Deployment(view *viewv1.MarkdownView, template *corev1ac.PodTemplateSpecApplyConfiguration, held bool) *appsv1ac.DeploymentApplyConfiguration {
	d := appsv1ac.Deployment(ViewerName(view.Name), view.Namespace)
	meta(d.ObjectMetaApplyConfiguration, view, nil)
	spec := appsv1ac.DeploymentSpec().
		WithReplicas(Replicas(view)).
		WithSelector(selector(view.Name)).
		WithTemplate(template).
		WithStrategy(appsv1ac.DeploymentStrategy().
			WithType(appsv1.RollingUpdateDeploymentStrategyType).
			WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
				WithMaxSurge(intstr.FromString("100%")).WithMaxUnavailable(intstr.FromInt32(0)))).
		// Older templates are useless: their content is deleted, and the spec decides what is
		// deployed. With a revisionHistoryLimit of 0, however, a ReplicaSet could be deleted before
		// its last Pod, and PodDisruptionBudgets report errors for a Pod without a controller.
		WithRevisionHistoryLimit(2).
		// The value MaxInt32 disables the Deployment's own deadline, which does not take Hold into
		// account; the operator's own deadline does.
		WithProgressDeadlineSeconds(math.MaxInt32)
	if held {
		spec.WithMinReadySeconds(Hold)
	}
	return d.WithSpec(spec)
}

// Service returns a Service that selects the viewers of one template.
func Service(view *viewv1.MarkdownView, contentHash, templateHash string) *corev1ac.ServiceApplyConfiguration {
	settings := view.Spec.Service
	if settings == nil {
		settings = &viewv1.ServiceSettings{}
	}
	kind := settings.Type
	if kind == "" {
		kind = corev1.ServiceTypeClusterIP
	}
	selector := Labels(view.Name)
	selector[ContentLabel], selector[TemplateLabel] = contentHash, templateHash
	s := corev1ac.Service(ViewerName(view.Name), view.Namespace)
	meta(s.ObjectMetaApplyConfiguration, view, settings.Annotations)
	return s.WithSpec(corev1ac.ServiceSpec().
		WithType(kind).
		WithSelector(selector).
		WithPorts(corev1ac.ServicePort().WithName(Port).WithProtocol(corev1.ProtocolTCP).
			WithPort(servicePort).WithTargetPort(intstr.FromString(Port))))
}

// PodDisruptionBudget returns a budget that lets a drain evict only one viewer at a time, or nil
// for a single viewer, which must not block a drain.
func PodDisruptionBudget(view *viewv1.MarkdownView) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	if Replicas(view) < 2 {
		return nil
	}
	b := policyv1ac.PodDisruptionBudget(ViewerName(view.Name), view.Namespace)
	meta(b.ObjectMetaApplyConfiguration, view, nil)
	return b.WithSpec(policyv1ac.PodDisruptionBudgetSpec().
		WithMaxUnavailable(intstr.FromInt32(1)).
		WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
		WithSelector(selector(view.Name)))
}

// NetworkPolicy returns a policy that lets readers connect, and forbids viewers to open
// connections, or nil if the spec disables the policy.
func NetworkPolicy(view *viewv1.MarkdownView) *networkingv1ac.NetworkPolicyApplyConfiguration {
	settings := view.Spec.NetworkPolicy
	if settings == nil {
		settings = &viewv1.NetworkPolicySettings{}
	}
	if settings.Disabled {
		return nil
	}
	// The rule refers to the port by name, because the engines use different port numbers.
	// While one engine replaces the other, viewers of both engines are running.
	rule := networkingv1ac.NetworkPolicyIngressRule().WithPorts(
		networkingv1ac.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromString(Port)))
	for i := range settings.From {
		peer := networkingv1ac.NetworkPolicyPeer()
		peer.PodSelector = labelSelector(settings.From[i].PodSelector)
		peer.NamespaceSelector = labelSelector(settings.From[i].NamespaceSelector)
		rule.WithFrom(peer)
	}
	p := networkingv1ac.NetworkPolicy(ViewerName(view.Name), view.Namespace)
	meta(p.ObjectMetaApplyConfiguration, view, nil)
	return p.WithSpec(networkingv1ac.NetworkPolicySpec().
		WithPodSelector(selector(view.Name)).
		WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
		WithIngress(rule))
}

// Ingress returns the Ingress of the site, or nil if the spec does not ask for one.
func Ingress(view *viewv1.MarkdownView) *networkingv1ac.IngressApplyConfiguration {
	settings := view.Spec.Ingress
	if settings == nil {
		return nil
	}
	backend := networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().
		WithName(ViewerName(view.Name)).
		WithPort(networkingv1ac.ServiceBackendPort().WithName(Port)))
	spec := networkingv1ac.IngressSpec().WithRules(networkingv1ac.IngressRule().
		WithHost(settings.Host).
		WithHTTP(networkingv1ac.HTTPIngressRuleValue().WithPaths(networkingv1ac.HTTPIngressPath().
			WithPath(BasePath(&view.Spec)).WithPathType(networkingv1.PathTypePrefix).WithBackend(backend))))
	spec.IngressClassName = settings.ClassName
	if settings.TLSSecretName != "" {
		spec.WithTLS(networkingv1ac.IngressTLS().WithHosts(settings.Host).WithSecretName(settings.TLSSecretName))
	}
	i := networkingv1ac.Ingress(ViewerName(view.Name), view.Namespace)
	meta(i.ObjectMetaApplyConfiguration, view, settings.Annotations)
	return i.WithSpec(spec)
}

// HTTPRoute returns the HTTPRoute of the site, or nil if the spec does not ask for one.
func HTTPRoute(view *viewv1.MarkdownView) *gatewayv1ac.HTTPRouteApplyConfiguration {
	settings := view.Spec.HTTPRoute
	if settings == nil {
		return nil
	}
	spec := gatewayv1ac.HTTPRouteSpec()
	for _, ref := range settings.ParentRefs {
		parent := gatewayv1ac.ParentReference().
			WithGroup(gatewayv1.GroupName).WithKind("Gateway").WithName(gatewayv1.ObjectName(ref.Name))
		if ref.Namespace != "" {
			parent.WithNamespace(gatewayv1.Namespace(ref.Namespace))
		}
		if ref.SectionName != "" {
			parent.WithSectionName(gatewayv1.SectionName(ref.SectionName))
		}
		spec.WithParentRefs(parent)
	}
	for _, host := range settings.Hostnames {
		spec.WithHostnames(gatewayv1.Hostname(host))
	}
	path := BasePath(&view.Spec)
	if path != "/" {
		// A prefix always matches complete path segments. Without its trailing slash, the
		// prefix /docs also matches /docs itself, which the viewer redirects to /docs/.
		path = strings.TrimSuffix(path, "/")
	}
	spec.WithRules(gatewayv1ac.HTTPRouteRule().
		WithMatches(gatewayv1ac.HTTPRouteMatch().WithPath(gatewayv1ac.HTTPPathMatch().
			WithType(gatewayv1.PathMatchPathPrefix).WithValue(path))).
		WithBackendRefs(gatewayv1ac.HTTPBackendRef().
			WithGroup("").WithKind("Service").WithName(gatewayv1.ObjectName(ViewerName(view.Name))).
			WithPort(servicePort).WithWeight(1)))
	r := gatewayv1ac.HTTPRoute(ViewerName(view.Name), view.Namespace)
	meta(r.ObjectMetaApplyConfiguration, view, settings.Annotations)
	return r.WithSpec(spec)
}
