package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MarkdownView is a documentation site made of Markdown pages.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=mdv,categories=all
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`,description="Viewers that serve the newest content"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Pages",type=integer,JSONPath=`.status.pages`
// +kubebuilder:printcolumn:name="Problems",type=integer,JSONPath=`.status.problemCount`,priority=1
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 56 && !self.metadata.name.contains('.')",message="metadata.name must have at most 56 characters and no dots: the Service is named viewer-<name>, and its name is a DNS label of at most 63"
type MarkdownView struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what the site is made of and how it is served.
	// +required
	Spec MarkdownViewSpec `json:"spec"`
	// status is what the operator observed last.
	// +optional
	Status MarkdownViewStatus `json:"status,omitempty"`
}

// MarkdownViewList is a list of MarkdownViews.
//
// +kubebuilder:object:root=true
type MarkdownViewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MarkdownView `json:"items"`
}

// Engine is the program that makes pages of Markdown.
type Engine string

const (
	// EngineViewer is this project's viewer.
	EngineViewer Engine = "Viewer"
	// EngineMdBook is mdBook.
	EngineMdBook Engine = "MdBook"
)

// Theme is how the site looks to a reader who has not chosen.
type Theme string

// The themes.
const (
	ThemeAuto  Theme = "Auto"
	ThemeLight Theme = "Light"
	ThemeDark  Theme = "Dark"
)

// MarkdownViewSpec is the desired site.
//
// +kubebuilder:validation:XValidation:rule="(has(self.markdowns) && size(self.markdowns) > 0) || (has(self.contentFrom) && size(self.contentFrom) > 0)",message="markdowns or contentFrom must give at least one file"
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || !has(self.httpRoute)",message="ingress and httpRoute exclude each other"
type MarkdownViewSpec struct {
	// markdowns are the site's files: path to text. A path may have directories
	// (guide/install.md). SUMMARY.md, if there, orders the navigation as it does
	// in mdBook; without it the navigation is made of the pages' titles.
	// +optional
	// +kubebuilder:validation:MaxProperties=2000
	// +kubebuilder:validation:XValidation:rule=`!self.exists(p, size(bytes(p)) > 240 || p.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))`,message="a path is relative, has at most 240 bytes, no empty part, no part that is . or begins with .., and none of \\ : * ? \" < > | # %",messageExpression=`self.filter(p, size(bytes(p)) > 240 || p.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))[0] + r': a path is relative, has at most 240 bytes, no empty part, no part that is . or begins with .., and none of \ : * ? " < > | # %'`
	Markdowns map[string]string `json:"markdowns,omitempty"`

	// binaryAssets are files that are not text, such as images: path to base64.
	// Paths are those of markdowns.
	// +optional
	// +kubebuilder:validation:MaxProperties=200
	// +kubebuilder:validation:XValidation:rule=`!self.exists(p, size(bytes(p)) > 240 || p.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))`,message="a path is relative, has at most 240 bytes, no empty part, no part that is . or begins with .., and none of \\ : * ? \" < > | # %",messageExpression=`self.filter(p, size(bytes(p)) > 240 || p.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))[0] + r': a path is relative, has at most 240 bytes, no empty part, no part that is . or begins with .., and none of \ : * ? " < > | # %'`
	BinaryAssets map[string][]byte `json:"binaryAssets,omitempty"`

	// contentFrom adds the files of ConfigMaps in this namespace; data and
	// binaryData both count. What markdowns and binaryAssets give wins over them,
	// and a later entry over an earlier one. A change of a ConfigMap is an edit of
	// the site.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	ContentFrom []ContentSource `json:"contentFrom,omitempty"`

	// replicas is the number of viewers, 1 to 5. kubectl scale and autoscalers
	// set it. To serve nothing, use suspend.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Replicas *int32 `json:"replicas,omitempty"`

	// viewerImage replaces the image that the operator is configured with. It must
	// be one the operator allows. An image whose repository is named mdbook is run
	// as mdBook is.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:@/-]*$`
	ViewerImage string `json:"viewerImage,omitempty"`

	// engine says how the image is run, where its name does not.
	// +optional
	// +kubebuilder:validation:Enum=Viewer;MdBook
	Engine Engine `json:"engine,omitempty"`

	// title is the name of the site. Default: the heading of SUMMARY.md or of the
	// first page, else metadata.name.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Title string `json:"title,omitempty"`

	// theme is how the site looks to a reader who has not chosen.
	// +optional
	// +kubebuilder:default=Auto
	// +kubebuilder:validation:Enum=Auto;Light;Dark
	Theme Theme `json:"theme,omitempty"`

	// basePath is the path below which the site is served, such as /handbook/.
	// +optional
	// +kubebuilder:default=/
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^/([A-Za-z0-9._~-]+/)*([A-Za-z0-9._~-]+)?$`
	BasePath string `json:"basePath,omitempty"`

	// suspend takes the viewers away and keeps everything else, until it is unset.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// service sets what the Service is.
	// +optional
	Service *ServiceSettings `json:"service,omitempty"`

	// ingress publishes the site through an Ingress.
	// +optional
	Ingress *IngressSettings `json:"ingress,omitempty"`

	// httpRoute publishes the site through a Gateway.
	// +optional
	HTTPRoute *HTTPRouteSettings `json:"httpRoute,omitempty"`

	// networkPolicy limits who reaches the viewers and whom they reach.
	// +optional
	NetworkPolicy *NetworkPolicySettings `json:"networkPolicy,omitempty"`

	// resources of each viewer. Default: what the operator is configured with.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// pod sets where and how the viewers' Pods run.
	// +optional
	Pod *PodSettings `json:"pod,omitempty"`
}

// ContentSource is a ConfigMap with files of the site.
type ContentSource struct {
	// configMap is the ConfigMap, in the namespace of the MarkdownView.
	// +required
	ConfigMap ConfigMapSource `json:"configMap"`
	// path is the directory the files appear in. Default: the root.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`size(bytes(self)) <= 240 && (self == '' || !self.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))`,message="a path is relative, has at most 240 bytes, no empty part, no part that is . or begins with .., and none of \\ : * ? \" < > | # %"
	Path string `json:"path,omitempty"`
}

// ConfigMapSource names a ConfigMap and what of it is taken.
type ConfigMapSource struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// optional lets the site be made without the ConfigMap while it is missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// items takes these keys only, and may place them. Default: every key, under
	// its own name.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=500
	Items []ContentItem `json:"items,omitempty"`
}

// ContentItem places one key of a ConfigMap.
type ContentItem struct {
	// key in data or binaryData.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// path of the file, below the source's path. Default: the key.
	// +optional
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:Pattern=`^([^/.\x00-\x1f\x7f\\:*?"<>|#%][^/\x00-\x1f\x7f\\:*?"<>|#%]*|\.[^/.\x00-\x1f\x7f\\:*?"<>|#%][^/\x00-\x1f\x7f\\:*?"<>|#%]*)(/([^/.\x00-\x1f\x7f\\:*?"<>|#%][^/\x00-\x1f\x7f\\:*?"<>|#%]*|\.[^/.\x00-\x1f\x7f\\:*?"<>|#%][^/\x00-\x1f\x7f\\:*?"<>|#%]*))*$`
	Path string `json:"path,omitempty"`
}

// ServiceSettings are settings of the Service.
type ServiceSettings struct {
	// type of the Service.
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`
	// annotations of the Service.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// IngressSettings are settings of the Ingress.
type IngressSettings struct {
	// host the site is served for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`
	// className is the IngressClass. Default: the cluster's.
	// +optional
	ClassName *string `json:"className,omitempty"`
	// annotations of the Ingress, such as cert-manager's.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// tlsSecretName is the Secret with the host's certificate. With it the site's
	// URL is https.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TLSSecretName string `json:"tlsSecretName,omitempty"`
}

// HTTPRouteSettings are settings of the HTTPRoute.
type HTTPRouteSettings struct {
	// parentRefs are the Gateways the route is attached to.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ParentRefs []GatewayRef `json:"parentRefs"`
	// hostnames the site is served for. The first is that of status.url.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Hostnames []string `json:"hostnames,omitempty"`
	// annotations of the HTTPRoute.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// GatewayRef names a Gateway.
type GatewayRef struct {
	// name of the Gateway.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// namespace of the Gateway. Default: that of the MarkdownView.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// sectionName is the listener.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SectionName string `json:"sectionName,omitempty"`
}

// NetworkPolicySettings are settings of the NetworkPolicy.
type NetworkPolicySettings struct {
	// disabled leaves the NetworkPolicy out.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// from limits who may reach the viewers, as in a NetworkPolicy. Default:
	// everybody. The viewers themselves may reach nobody either way.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	From []NetworkPolicyPeer `json:"from,omitempty"`
}

// NetworkPolicyPeer selects Pods.
type NetworkPolicyPeer struct {
	// podSelector selects Pods; of all namespaces that namespaceSelector selects,
	// else of the MarkdownView's.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// namespaceSelector selects namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// PodSettings are settings of the viewers' Pods.
type PodSettings struct {
	// labels added to the Pods. The operator's own win.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations added to the Pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// nodeSelector of the Pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the Pods.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity of the Pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// topologySpreadConstraints of the Pods. Default: spread over hosts and zones
	// where that is possible. A constraint without a labelSelector means the
	// viewers of this site.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// priorityClassName of the Pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// imagePullSecrets of the Pods.
	// +optional
	// +listType=atomic
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// Types of conditions.
const (
	// ConditionAvailable is true while at least one viewer serves the site.
	ConditionAvailable = "Available"
	// ConditionReady is true when all viewers serve the newest content.
	ConditionReady = "Ready"
	// ConditionDegraded is true when something that was asked for cannot be done.
	ConditionDegraded = "Degraded"
)

// Reasons of conditions.
const (
	ReasonOK                = "OK"
	ReasonRollingOut        = "RollingOut"
	ReasonUnavailable       = "Unavailable"
	ReasonSuspended         = "Suspended"
	ReasonStalled           = "Stalled"
	ReasonContentMissing    = "ContentMissing"
	ReasonContentInvalid    = "ContentInvalid"
	ReasonContentTooLarge   = "ContentTooLarge"
	ReasonForeignObject     = "ForeignObject"
	ReasonChildRejected     = "ChildRejected"
	ReasonImageNotAllowed   = "ImageNotAllowed"
	ReasonGatewayAPIMissing = "GatewayAPIMissing"
)

// MarkdownViewStatus is the observed site.
type MarkdownViewStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Available, Ready and Degraded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// url is the address of the site. It does not change while the name, the base
	// path and the way it is published stay.
	// +optional
	URL string `json:"url,omitempty"`
	// contentHash tells the content that is served from any other.
	// +optional
	ContentHash string `json:"contentHash,omitempty"`
	// pages is the number of Markdown pages.
	// +optional
	Pages int32 `json:"pages,omitempty"`
	// replicas is the number of viewers there are, of any content.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// readyReplicas is the number of viewers that serve the newest content.
	// +optional
	// +kubebuilder:default=0
	ReadyReplicas int32 `json:"readyReplicas"`
	// selector selects the viewers' Pods; autoscalers use it.
	// +optional
	Selector string `json:"selector,omitempty"`
	// problemCount is the number of problems found in the pages.
	// +optional
	// +kubebuilder:default=0
	ProblemCount int32 `json:"problemCount"`
	// problems are the first 50 problems found in the pages, such as dead links.
	// +optional
	// +listType=atomic
	Problems []PageProblem `json:"problems,omitempty"`
}

// PageProblem is something a reader of a page would stumble over.
type PageProblem struct {
	// path of the page.
	Path string `json:"path"`
	// line in the page, from 1; 0 where none can be named.
	// +optional
	Line int32 `json:"line,omitempty"`
	// message says what is wrong.
	Message string `json:"message"`
}
