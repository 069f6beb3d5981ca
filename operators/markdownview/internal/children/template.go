package children

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/content"
)

const (
	viewerPort = 8080
	mdBookPort = 3000
	// nonRoot is the unprivileged user that distroless images define.
	nonRoot = 65532
	// drainSeconds is the time for which a viewer keeps responding after SIGTERM, so
	// that every proxy can notice its shutdown.
	drainSeconds = 5
	// graceSeconds leaves time for running requests after the drain.
	graceSeconds = 30
	// readMode makes the files of a volume readable for every user.
	readMode = 0o444
)

// Template returns the Pod template and its hash. The labels of the template include the
// hash.
func Template(s *Site) (template *corev1ac.PodTemplateSpecApplyConfiguration, hash string, err error) {
	pod := s.View.Spec.Pod
	if pod == nil {
		pod = &viewv1.PodSettings{}
	}
	spec, err := podSpec(s, pod)
	if err != nil {
		return nil, "", err
	}
	labels := maps.Clone(pod.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	delete(labels, TemplateLabel)
	maps.Copy(labels, Labels(s.View.Name))
	labels[ContentLabel] = s.Hash
	template = corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(spec)
	if len(pod.Annotations) > 0 {
		template.WithAnnotations(pod.Annotations)
	}
	text, err := json.Marshal(template)
	if err != nil {
		return nil, "", fmt.Errorf("encoding the Pod template: %w", err)
	}
	hash = content.HashOf(text)
	template.Labels[TemplateLabel] = hash
	return template, hash, nil
}

func podSpec(s *Site, pod *viewv1.PodSettings) (*corev1ac.PodSpecApplyConfiguration, error) {
	container, volumes, err := engine(s)
	if err != nil {
		return nil, err
	}
	security := corev1ac.PodSecurityContext().WithRunAsNonRoot(true).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	if Engine(&s.View.Spec) == viewv1.EngineMdBook {
		// Images of mdBook run as root by default.
		security.WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).WithFSGroup(nonRoot)
	}
	spec := corev1ac.PodSpec().
		WithContainers(container).WithVolumes(volumes...).WithSecurityContext(security).
		WithAutomountServiceAccountToken(false).WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(graceSeconds)
	return spec, place(spec, s.View, pod)
}

// place sets where and how the Pods run.
func place(spec *corev1ac.PodSpecApplyConfiguration, view *viewv1.MarkdownView, pod *viewv1.PodSettings) error {
	if len(pod.NodeSelector) > 0 {
		spec.WithNodeSelector(pod.NodeSelector)
	}
	if pod.PriorityClassName != "" {
		spec.WithPriorityClassName(pod.PriorityClassName)
	}
	constraints := pod.TopologySpreadConstraints
	if len(constraints) == 0 {
		constraints = spread()
	}
	for i := range constraints {
		c, err := convert[corev1ac.TopologySpreadConstraintApplyConfiguration](&constraints[i])
		if err != nil {
			return err
		}
		if c.LabelSelector == nil {
			c.LabelSelector = selector(view.Name)
		}
		spec.WithTopologySpreadConstraints(c)
	}
	for i := range pod.ImagePullSecrets {
		spec.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(pod.ImagePullSecrets[i].Name))
	}
	for i := range pod.Tolerations {
		t, err := convert[corev1ac.TolerationApplyConfiguration](&pod.Tolerations[i])
		if err != nil {
			return err
		}
		spec.WithTolerations(t)
	}
	if pod.Affinity == nil {
		return nil
	}
	affinity, err := convert[corev1ac.AffinityApplyConfiguration](pod.Affinity)
	spec.Affinity = affinity
	return err
}

// spread returns constraints that prefer different hosts and zones for viewers of the same
// revision.
func spread() []corev1.TopologySpreadConstraint {
	var constraints []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		constraints = append(constraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway,
			MatchLabelKeys: []string{"pod-template-hash"},
		})
	}
	return constraints
}

// engine returns the container and its volumes.
func engine(s *Site) (*corev1ac.ContainerApplyConfiguration, []*corev1ac.VolumeApplyConfiguration, error) {
	resources := s.View.Spec.Resources
	if resources == nil {
		resources = &s.Options.Resources
	}
	limits, err := convert[corev1ac.ResourceRequirementsApplyConfiguration](resources)
	if err != nil {
		return nil, nil, err
	}
	container := corev1ac.Container().
		WithImage(Image(&s.View.Spec, s.Options)).
		WithResources(limits).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL")))
	volumes := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("content").WithProjected(projection(s)),
		scratch("tmp"),
	}
	if Engine(&s.View.Spec) == viewv1.EngineMdBook {
		mdBook(container, s)
		return container, append(volumes, scratch("book")), nil
	}
	viewer(container, s)
	return container, volumes, nil
}

func viewer(c *corev1ac.ContainerApplyConfiguration, s *Site) {
	theme := s.View.Spec.Theme
	if theme == "" {
		theme = viewv1.ThemeAuto
	}
	c.WithName("viewer").
		WithCommand("/viewer").
		WithArgs(
			"--content=/content",
			fmt.Sprintf("--listen=:%d", viewerPort),
			"--base-path="+BasePath(&s.View.Spec),
			"--title="+literal(s.Title))
	// Deployments of a version without this argument keep their Pods, because en is the viewer's
	// default.
	if tag := language(&s.View.Spec); tag != defaultLanguage {
		c.WithArgs("--language=" + tag)
	}
	c.WithArgs(
		"--theme="+strings.ToLower(string(theme)),
		// The viewer itself waits before it exits. If a preStop hook waited instead,
		// the viewer would receive SIGTERM only at the end of the wait. The viewer must
		// receive SIGTERM at the beginning of the wait. After SIGTERM, the viewer
		// closes each connection after a response, so no client keeps a connection to
		// old pages.
		fmt.Sprintf("--drain=%ds", drainSeconds)).
		WithPorts(port(viewerPort)).
		WithReadinessProbe(probe("/readyz", 1)).
		WithLivenessProbe(probe("/healthz", 10)).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("content").WithMountPath("/content").WithReadOnly(true),
			corev1ac.VolumeMount().WithName("tmp").WithMountPath("/tmp"))
}

// mdBook configures the container to build the book in an emptyDir, because the directory
// with the sources is read-only. There is no book.toml, so environment variables configure
// mdBook.
func mdBook(c *corev1ac.ContainerApplyConfiguration, s *Site) {
	c.WithName("mdbook").
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(
			corev1ac.LifecycleHandler().WithSleep(corev1ac.SleepAction().WithSeconds(drainSeconds)))).
		WithCommand("mdbook").WithArgs("serve", "--hostname", "0.0.0.0").
		WithWorkingDir("/book").
		WithEnv(
			corev1ac.EnvVar().WithName("HOME").WithValue("/tmp"),
			corev1ac.EnvVar().WithName("MDBOOK_BOOK__TITLE").WithValue(literal(s.Title)),
			// Missing files cannot be created, because the sources are read-only.
			corev1ac.EnvVar().WithName("MDBOOK_BUILD__CREATE_MISSING").WithValue("false")).
		WithPorts(port(mdBookPort)).
		WithReadinessProbe(probe("/", 1)).
		WithLivenessProbe(probe("/", 10)).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("book").WithMountPath("/book"),
			corev1ac.VolumeMount().WithName("content").WithMountPath("/book/src").WithReadOnly(true),
			corev1ac.VolumeMount().WithName("tmp").WithMountPath("/tmp"))
	if tag := language(&s.View.Spec); tag != defaultLanguage {
		c.WithEnv(corev1ac.EnvVar().WithName("MDBOOK_BOOK__LANGUAGE").WithValue(tag))
	}
}

// defaultLanguage is the language of a site whose spec has none. The viewer and mdBook have the same
// default.
const defaultLanguage = "en"

// language returns the language of the site.
func language(spec *viewv1.MarkdownViewSpec) string { return cmp.Or(spec.Language, defaultLanguage) }

// literal prevents the kubelet from expanding variables in a text.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func port(number int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(Port).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

// probe returns a probe that fails after three periods.
func probe(path string, period int32) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(Port))).
		WithPeriodSeconds(period).WithFailureThreshold(3)
}

func scratch(name string) *corev1ac.VolumeApplyConfiguration {
	return corev1ac.Volume().WithName(name).WithEmptyDir(corev1ac.EmptyDirVolumeSource())
}

// projection returns a volume with each file at its path.
func projection(s *Site) *corev1ac.ProjectedVolumeSourceApplyConfiguration {
	volume := corev1ac.ProjectedVolumeSource().WithDefaultMode(readMode)
	for n, pack := range s.Packs {
		source := corev1ac.ConfigMapProjection().WithName(ContentName(s.View.Name, s.Hash, n))
		for _, item := range pack.Items {
			source.WithItems(corev1ac.KeyToPath().WithKey(item.Key).WithPath(item.File.Path))
		}
		volume.WithSources(corev1ac.VolumeProjection().WithConfigMap(source))
	}
	return volume
}

// convert turns an API type into its apply configuration. The two types have the same JSON
// form.
func convert[T any](in any) (*T, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("writing %T: %w", in, err)
	}
	out := new(T)
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("reading %T: %w", out, err)
	}
	return out, nil
}
