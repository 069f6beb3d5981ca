package oncluster

import (
	"fmt"
	"path"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/koboshi-dev/koboshi/internal/check/oncluster/place"
)

// Labels and annotations of the objects.
const (
	managedBy       = "app.kubernetes.io/managed-by"
	koboshi         = "koboshi"
	jobLabel        = "check.koboshi.dev/job"
	indexLabel      = "check.koboshi.dev/index"
	podAnnotation   = "check.koboshi.dev/pod"
	pieceAnnotation = "check.koboshi.dev/piece"
)

// Variables that tell a Pod who it is.
const (
	NamespaceVariable = "KOBOSHI_NAMESPACE"
	JobVariable       = "KOBOSHI_JOB"
	JobUIDVariable    = "KOBOSHI_JOB_UID"
	PodVariable       = "KOBOSHI_POD_UID"
	IndexVariable     = "JOB_COMPLETION_INDEX" // set by the Job controller
)

// Exit codes of a Pod.
const (
	// CouldNot means that the check could not be done, and that another attempt would not change this. It is not 2,
	// with which a Go program ends after a panic, and, as process 1, after a SIGTERM that it does not handle yet.
	CouldNot = 3
	// terminated means that the Pod was asked to end, for example by kubectl delete pod.
	terminated = 143
)

const (
	container = "check"
	// attempts is how often a shard is repeated after its Pod failed. Lost Pods do not count.
	attempts = 3
	// kept is the number of seconds for which a Job that has ended is kept if this process cannot delete it.
	kept = 3600
	// grace is the number of seconds that a Pod has to end. It stores nothing when it is asked to end.
	grace = 5
	// user is that of the image.
	user = 65532
)

func ownedBy(job string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: uid}
}

// meta returns the metadata of an object of this check.
func (r *run) meta(name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: r.Namespace, Name: name, Labels: map[string]string{managedBy: koboshi, jobLabel: r.name}}
	if r.owner.Name != "" {
		m.OwnerReferences = []metav1.OwnerReference{r.owner}
	}
	return m
}

func (r *run) account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: r.meta(r.name)}
}

func (r *run) role() *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: r.meta(r.name), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
	}}
}

func (r *run) binding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: r.meta(r.name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: r.name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: r.name}},
	}
}

func (r *run) planName() string { return r.name + "-plan" }

// planMap holds the plan for the shards.
func (r *run) planMap(packed []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: r.meta(r.planName()), Immutable: ptr.To(true), BinaryData: map[string][]byte{documentKey: packed}}
}

// planJob learns the plan.
func (r *run) planJob() *batchv1.Job {
	return r.job(r.planName(), 1, append([]string{"check", "pod", "--phase=plan"}, r.PlanArgs...))
}

// shardJob runs the shards. It is suspended until there is a plan.
func (r *run) shardJob() *batchv1.Job {
	args := append([]string{"check", "pod", "--phase=shard", "--shards=" + strconv.Itoa(r.Shards)}, r.ShardArgs...)
	job := r.job(r.name, int32(r.Shards), args)
	job.Spec.Suspend = ptr.To(true)
	pod := &job.Spec.Template.Spec
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "plan", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: r.planName()}},
	}})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "plan", MountPath: place.Plan, ReadOnly: true})
	return job
}

// PlanFile is the file with the plan in the Pod of a shard.
func PlanFile() string { return path.Join(place.Plan, documentKey) }

// job returns an Indexed Job. A Pod that was deleted, evicted or preempted is replaced, as often as necessary.
func (r *run) job(name string, completions int32, args []string) *batchv1.Job {
	indexed := batchv1.IndexedCompletion
	exits := func(code int32, action batchv1.PodFailurePolicyAction) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: ptr.To(container), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
		}}
	}
	return &batchv1.Job{ObjectMeta: r.meta(name), Spec: batchv1.JobSpec{
		Completions: &completions, Parallelism: &completions, CompletionMode: &indexed,
		BackoffLimitPerIndex: ptr.To(int32(attempts)), TTLSecondsAfterFinished: ptr.To(int32(kept)),
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
			{Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
			}},
			exits(terminated, batchv1.PodFailurePolicyActionIgnore),
			exits(CouldNot, batchv1.PodFailurePolicyActionFailIndex),
		}},
		Template: r.template(args),
	}}
}

// template returns the Pod of a Job. It satisfies the Pod Security Standard "restricted".
func (r *run) template(args []string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{managedBy: koboshi, jobLabel: r.name}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: r.name, EnableServiceLinks: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To(int64(grace)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To(int64(user)), RunAsGroup: ptr.To(int64(user)), FSGroup: ptr.To(int64(user)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: container, Image: r.Image, Args: args, WorkingDir: place.Project, Env: r.environment(),
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: r.CPU, corev1.ResourceMemory: r.Memory}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				VolumeMounts:             []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
			}},
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// environment gives a Pod its identity, and limits the processors that it uses. Without the limit, it would start
// as many planes as the node has room for, although the node also runs other Pods.
func (r *run) environment() []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	return []corev1.EnvVar{
		field(NamespaceVariable, "metadata.namespace"),
		field(JobVariable, fmt.Sprintf("metadata.labels['%s']", batchv1.JobNameLabel)),
		field(JobUIDVariable, fmt.Sprintf("metadata.labels['%s']", batchv1.ControllerUidLabel)),
		field(PodVariable, "metadata.uid"),
		{Name: "GOMAXPROCS", Value: strconv.FormatInt(max(r.CPU.Value(), 1), 10)}, // Value rounds up
		{Name: "HOME", Value: "/tmp"},
	}
}
