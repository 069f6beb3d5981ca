package missing

import "strings"

// projects maps an API group to the project that ships its CRDs. A group also stands for its
// subgroups.
var projects = map[string]string{
	"argoproj.io":                     "Argo",
	"autoscaling.k8s.io":              "the Vertical Pod Autoscaler",
	"bitnami.com":                     "Sealed Secrets",
	"cdi.kubevirt.io":                 "the Containerized Data Importer of KubeVirt",
	"cert-manager.io":                 "cert-manager",
	"cilium.io":                       "Cilium",
	"cluster.x-k8s.io":                "Cluster API",
	"crd.projectcalico.org":           "Calico",
	"crossplane.io":                   "Crossplane",
	"elbv2.k8s.aws":                   "the AWS Load Balancer Controller",
	"eventing.knative.dev":            "Knative Eventing",
	"external-secrets.io":             "the External Secrets Operator",
	"externaldns.k8s.io":              "ExternalDNS",
	"gatekeeper.sh":                   "Gatekeeper",
	"gateway.networking.k8s.io":       "the Gateway API",
	"istio.io":                        "Istio",
	"jobset.x-k8s.io":                 "JobSet",
	"k8s.cni.cncf.io":                 "Multus",
	"kafka.strimzi.io":                "Strimzi",
	"karpenter.sh":                    "Karpenter",
	"keda.sh":                         "KEDA",
	"kubeflow.org":                    "Kubeflow",
	"kubevirt.io":                     "KubeVirt",
	"kueue.x-k8s.io":                  "Kueue",
	"kyverno.io":                      "Kyverno",
	"leaderworkerset.x-k8s.io":        "LeaderWorkerSet",
	"linkerd.io":                      "Linkerd",
	"messaging.knative.dev":           "Knative Eventing",
	"metallb.io":                      "MetalLB",
	"monitoring.coreos.com":           "the Prometheus Operator",
	"multicluster.x-k8s.io":           "the Multi-Cluster Services API",
	"nfd.k8s-sigs.io":                 "Node Feature Discovery",
	"openshift.io":                    "OpenShift",
	"operators.coreos.com":            "the Operator Lifecycle Manager",
	"policy.networking.k8s.io":        "the Network Policy API",
	"postgresql.cnpg.io":              "CloudNativePG",
	"projectcontour.io":               "Contour",
	"rabbitmq.com":                    "the RabbitMQ operators",
	"ray.io":                          "KubeRay",
	"secrets-store.csi.x-k8s.io":      "the Secrets Store CSI Driver",
	"services.k8s.aws":                "the AWS Controllers for Kubernetes",
	"serving.knative.dev":             "Knative Serving",
	"snapshot.storage.k8s.io":         "the CSI external-snapshotter",
	"sources.knative.dev":             "Knative Eventing",
	"tekton.dev":                      "Tekton",
	"toolkit.fluxcd.io":               "Flux",
	"traefik.containo.us":             "Traefik",
	"traefik.io":                      "Traefik",
	"velero.io":                       "Velero",
	"networking.internal.knative.dev": "Knative Serving",
}

// project returns the project that ships the CRDs of an API group, or "".
func project(group string) string {
	for {
		if name, ok := projects[group]; ok {
			return name
		}
		_, rest, ok := strings.Cut(group, ".")
		if !ok {
			return ""
		}
		group = rest
	}
}
