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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 56 && !self.metadata.name.contains('.')",message="metadata.name must have at most 56 characters and no dots: the Service is named viewer-<name>, which must be a DNS label of at most 63 characters"
type MarkdownView struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired content of the site, and how it is served.
	// +required
	Spec MarkdownViewSpec `json:"spec"`
	// status is the state that the operator last observed.
	// +optional
	Status MarkdownViewStatus `json:"status,omitzero"`
}

// MarkdownViewList is a list of MarkdownViews.
//
// +kubebuilder:object:root=true
type MarkdownViewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MarkdownView `json:"items"`
}

// Engine is the program that renders Markdown as pages.
type Engine string

const (
	// EngineViewer is this project's viewer.
	EngineViewer Engine = "Viewer"
	// EngineMdBook is mdBook.
	EngineMdBook Engine = "MdBook"
)

// Theme is the color scheme for readers who have not chosen one.
type Theme string

// Values of Theme.
const (
	ThemeAuto  Theme = "Auto"
	ThemeLight Theme = "Light"
	ThemeDark  Theme = "Dark"
)

// MarkdownViewSpec is the desired site.
//
// +kubebuilder:validation:XValidation:rule="(has(self.markdowns) && size(self.markdowns) > 0) || (has(self.contentFrom) && size(self.contentFrom) > 0)",message="markdowns or contentFrom must contain at least one file"
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || !has(self.httpRoute)",message="ingress and httpRoute cannot be used together"
type MarkdownViewSpec struct {
	// markdowns maps the paths of the site's text files to their texts. A path may have
	// directories (guide/install.md). SUMMARY.md, if it exists, orders the navigation as in
	// mdBook; without it, the navigation follows the directory tree.
	// +optional
	// +kubebuilder:validation:MaxProperties=2000
	// +kubebuilder:validation:XValidation:rule=`!self.exists(p, size(bytes(p)) > 240 || p.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))`,message="a path must be relative, have at most 240 bytes, and contain none of the characters \\ : * ? \" < > | # %; no part of it may be empty, be \".\" or begin with \"..\"",messageExpression=`self.filter(p, size(bytes(p)) > 240 || p.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))[0] + r': a path must be relative, have at most 240 bytes, and contain none of the characters \ : * ? " < > | # %; no part of it may be empty, be "." or begin with ".."'`
	Markdowns map[string]string `json:"markdowns,omitempty"`

	// binaryAssets maps the paths of other files, such as images, to base64. The rules for
	// paths are the same as in markdowns.
	// +optional
	// +kubebuilder:validation:MaxProperties=200
	// +kubebuilder:validation:XValidation:rule=`!self.exists(p, size(bytes(p)) > 240 || p.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))`,message="a path must be relative, have at most 240 bytes, and contain none of the characters \\ : * ? \" < > | # %; no part of it may be empty, be \".\" or begin with \"..\"",messageExpression=`self.filter(p, size(bytes(p)) > 240 || p.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))[0] + r': a path must be relative, have at most 240 bytes, and contain none of the characters \ : * ? " < > | # %; no part of it may be empty, be "." or begin with ".."'`
	BinaryAssets map[string][]byte `json:"binaryAssets,omitempty"`

	// contentFrom adds files from the data and binaryData of ConfigMaps in this namespace.
	// If a path occurs several times, markdowns and binaryAssets take precedence over
	// contentFrom, and later entries of contentFrom over earlier ones. A change to one of
	// these ConfigMaps is an edit of the site.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	ContentFrom []ContentSource `json:"contentFrom,omitempty"`

	// replicas is the number of viewers, 1 to 50. kubectl scale and autoscalers set it.
	// To run no viewer, use suspend.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	Replicas *int32 `json:"replicas,omitempty"`

	// viewerImage is the image of the viewers. Default: the image configured in the
	// operator. The operator must allow the image. An image whose repository is named
	// mdbook is run as mdBook.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:@/-]*$`
	ViewerImage string `json:"viewerImage,omitempty"`

	// engine is the program in the image. Default: MdBook if the repository of the image
	// is named mdbook, otherwise Viewer. mdBook does not sanitize pages: HTML and scripts
	// in them run in the readers' browsers.
	// +optional
	// +kubebuilder:validation:Enum=Viewer;MdBook
	Engine Engine `json:"engine,omitempty"`

	// title is the name of the site. Default: the heading of SUMMARY.md or of the
	// first page, otherwise metadata.name.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Title string `json:"title,omitempty"`

	// language is the language of the site, as a BCP 47 tag such as en, ja or pt-BR. Each
	// page declares this language in its HTML. The viewer's own texts exist in en and ja;
	// sites in other languages show the texts in en.
	// +optional
	// +kubebuilder:default=en
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:Pattern=`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`
	Language string `json:"language,omitempty"`

	// theme is the color scheme for readers who have not chosen one.
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

	// suspend stops all viewers and keeps everything else. When the viewers have stopped,
	// Ready is True with the reason Suspended, and Available is False.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// service configures the Service.
	// +optional
	Service *ServiceSettings `json:"service,omitempty"`

	// ingress publishes the site through an Ingress.
	// +optional
	Ingress *IngressSettings `json:"ingress,omitempty"`

	// httpRoute publishes the site through a Gateway.
	// +optional
	HTTPRoute *HTTPRouteSettings `json:"httpRoute,omitempty"`

	// networkPolicy limits the connections to and from the viewers.
	// +optional
	NetworkPolicy *NetworkPolicySettings `json:"networkPolicy,omitempty"`

	// resources of each viewer. Default: the resources configured in the operator.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// pod configures where and how the viewers' Pods run.
	// +optional
	Pod *PodSettings `json:"pod,omitempty"`
}

// ContentSource is a ConfigMap with files of the site.
type ContentSource struct {
	// configMap is the ConfigMap, in the namespace of the MarkdownView.
	// +required
	ConfigMap ConfigMapSource `json:"configMap"`
	// path is the directory of the site to which the files are added. Default: the root.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`size(bytes(self)) <= 240 && (self == '' || !self.matches(r'(^|/)(\.?(/|$)|\.\.)|[\x00-\x1f\x7f\\:*?"<>|#%]'))`,message="a path must be relative, have at most 240 bytes, and contain none of the characters \\ : * ? \" < > | # %; no part of it may be empty, be \".\" or begin with \"..\""
	Path string `json:"path,omitempty"`
}

// ConfigMapSource names a ConfigMap and selects keys from it.
type ConfigMapSource struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// optional allows the ConfigMap, or the keys in items, to be missing.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// items selects keys, and may set a path for each. Default: all keys, with the key as
	// the path.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=500
	Items []ContentItem `json:"items,omitempty"`
}

// ContentItem places one key of a ConfigMap.
type ContentItem struct {
	// key is a key in data or binaryData.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// path is the path of the file, below the source's path. Default: the key.
	// +optional
	// +kubebuilder:validation:MaxLength=240
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 240",message="a path has at most 240 bytes"
	// +kubebuilder:validation:Pattern=`^([^/.\x00-\x1f\x7f\\:*?"<>|#%][^/\x00-\x1f\x7f\\:*?"<>|#%]*|\.[^/.\x00-\x1f\x7f\\:*?"<>|#%][^/\x00-\x1f\x7f\\:*?"<>|#%]*)(/([^/.\x00-\x1f\x7f\\:*?"<>|#%][^/\x00-\x1f\x7f\\:*?"<>|#%]*|\.[^/.\x00-\x1f\x7f\\:*?"<>|#%][^/\x00-\x1f\x7f\\:*?"<>|#%]*))*$`
	Path string `json:"path,omitempty"`
}

// ServiceSettings are settings of the Service.
type ServiceSettings struct {
	// type of the Service. The operator's --author-overrides limits this field.
	// +optional
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`
	// annotations of the Service. The operator's --author-overrides limits their keys.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// IngressSettings are settings of the Ingress.
type IngressSettings struct {
	// host of the site.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`
	// className is the IngressClass. Default: the default class of the cluster.
	// +optional
	ClassName *string `json:"className,omitempty"`
	// annotations of the Ingress, such as those for cert-manager. The operator's
	// --author-overrides limits their keys.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// tlsSecretName is the Secret with the certificate of the host. If it is set, the URL
	// of the site begins with https.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	TLSSecretName string `json:"tlsSecretName,omitempty"`
}

// HTTPRouteSettings are settings of the HTTPRoute.
type HTTPRouteSettings struct {
	// parentRefs are the Gateways to which the route is attached.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ParentRefs []GatewayRef `json:"parentRefs"`
	// hostnames of the site. The first host name is used in status.url.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Hostnames []string `json:"hostnames,omitempty"`
	// annotations of the HTTPRoute. The operator's --author-overrides limits their keys.
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
	// namespace of the Gateway. Default: the namespace of the MarkdownView.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// sectionName is the name of the listener.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SectionName string `json:"sectionName,omitempty"`
}

// NetworkPolicySettings are settings of the NetworkPolicy.
type NetworkPolicySettings struct {
	// disabled turns the NetworkPolicy off.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// from limits the clients of the viewers, as in a NetworkPolicy. Default: all clients.
	// The viewers themselves may never open connections.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	From []NetworkPolicyPeer `json:"from,omitempty"`
}

// NetworkPolicyPeer selects Pods.
type NetworkPolicyPeer struct {
	// podSelector selects Pods in the namespaces that namespaceSelector selects. Without
	// a namespaceSelector, it selects Pods in the namespace of the MarkdownView.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// namespaceSelector selects namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// PodSettings are settings of the viewers' Pods.
type PodSettings struct {
	// labels added to the Pods. The operator's own labels take precedence. The operator's
	// --author-overrides limits the keys of labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations added to the Pods. The operator's --author-overrides limits their keys.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// nodeSelector of the Pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the Pods. The operator's --author-overrides limits their keys.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity of the Pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// topologySpreadConstraints of the Pods. Default: spread over hosts and zones if
	// possible. A constraint without a labelSelector applies to the viewers of this site.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// priorityClassName of the Pods. The operator's --author-overrides limits this field.
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
	// ConditionReady is true when all viewers serve the newest content, or when the site
	// is suspended and no viewer runs.
	ConditionReady = "Ready"
	// ConditionDegraded is true when something that the spec asks for cannot be done.
	ConditionDegraded = "Degraded"
	// ConditionStalled is true when a problem remains until the spec or the cluster
	// changes. kstatus reports a stalled MarkdownView as Failed.
	ConditionStalled = "Stalled"
)

// Reasons of conditions.
const (
	ReasonOK                 = "OK"
	ReasonRollingOut         = "RollingOut"
	ReasonUnavailable        = "Unavailable"
	ReasonSuspended          = "Suspended"
	ReasonStalled            = "Stalled"
	ReasonReadFailed         = "ReadFailed"
	ReasonContentMissing     = "ContentMissing"
	ReasonContentInvalid     = "ContentInvalid"
	ReasonContentTooLarge    = "ContentTooLarge"
	ReasonForeignObject      = "ForeignObject"
	ReasonChildRejected      = "ChildRejected"
	ReasonImageNotAllowed    = "ImageNotAllowed"
	ReasonOverrideNotAllowed = "OverrideNotAllowed"
	ReasonGatewayAPIMissing  = "GatewayAPIMissing"
)

// MarkdownViewStatus is the observed state of the site.
type MarkdownViewStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Available, Ready, Degraded and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// url is the address of the site. The address changes only with the name, the base
	// path, or the way in which the site is published.
	// +optional
	URL string `json:"url,omitempty"`
	// contentHash identifies the content that is served.
	// +optional
	ContentHash string `json:"contentHash,omitempty"`
	// pages is the number of Markdown pages.
	// +optional
	Pages int32 `json:"pages,omitempty"`
	// replicas is the current number of viewers, whatever content they serve.
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
	// problems holds the first 50 problems found in the pages, such as dead links.
	// +optional
	// +listType=atomic
	Problems []PageProblem `json:"problems,omitempty"`
}

// PageProblem is a problem that readers of a page would notice, such as a dead link.
type PageProblem struct {
	// path of the page.
	Path string `json:"path"`
	// line is the line in the page, counting from 1; 0 if unknown.
	// +optional
	Line int32 `json:"line,omitempty"`
	// message explains the problem.
	Message string `json:"message"`
}
