package conformance

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A takeout selects the tests that must fail when koboshi up runs with args, because args
// remove the part of Kubernetes that the tests name.
type takeout struct {
	test string // regular expression that matches whole names
	args string // arguments of koboshi up; they come last and take precedence
}

var takeouts = slices.Concat(coreTakeouts, apiTakeouts, runTakeouts)

// No takeout covers the following behavior, because no flag can remove it. Only the assertions of
// the tests themselves show that Koboshi behaves in this way. Nothing shows that these tests would
// fail if Koboshi behaved differently. The reasons:
//
//   - Preconditions, finalizers, conflicts and the resumption of a watch are
//     part of the API server's storage.
//   - Impersonation, TokenRequest, the lifetime of its tokens and the
//     check of client certificates are in every API server, and without a client CA
//     there is no administrator to test with.
//   - The refusals, the kubeconfig and the exit code belong to koboshi up itself.
//   - maxUnavailable and the order of a StatefulSet are rules within a
//     controller; without the controller there is no rollout at all.
var coreTakeouts = []takeout{
	{"TestDeploymentMakesOneReplicaSetThatMakesThePods|TestDeploymentScalesUp|TestDeploymentScalesDown|TestRollingUpdate.*|TestRolloutUndo.*", "--controllers=-deployment-controller"},
	{"TestDeploymentMakesOneReplicaSetThatMakesThePods|TestDeletedPodOfADeploymentIsReplaced", "--controllers=-replicaset-controller"},
	{"TestPodsAreScheduledBeforeTheyRunAndAreReady", "--controllers=-kube-scheduler"},
	{"TestPodsAreScheduledBeforeTheyRunAndAreReady|TestLogsSay.*|TestExecFails.*|TestPortForwardFails.*|TestDaemonSet.*", "--nodes=0"},
	{"TestDaemonSetRunsAPodOnEveryNode", "--nodes=2"},
	{"TestStatefulSet.*", "--controllers=-statefulset-controller"},
	{"TestJobCompletes", "--controllers=-job-controller"},
	{"TestCronJobMakesTheJobThatIsDue", "--controllers=-cronjob-controller"},
	{"TestDaemonSet.*", "--controllers=-daemonset-controller"},
	{"TestEndpointSlices.*", "--controllers=-endpointslice-controller"},
	{"TestDisruptionBudget.*", "--controllers=-disruption-controller"},
	{"TestEndpointsListThe.*", "--controllers=-endpoints-controller"},
	{"TestEndpointsThatAClientWrites.*", "--controllers=-endpointslice-mirroring-controller"},
	{"TestPodsOfAStatefulSetRun.*|TestVolumeOfAClass.*", "--controllers=-persistentvolume-binder-controller"},
	{"TestClaimThatAPodUses.*", "--controllers=-persistentvolumeclaim-protection-controller"},
	{"TestClaimThatAPodUses.*", "--controllers=-persistentvolume-protection-controller"},
	{"TestPodRunsWithAnEphemeral.*", "--controllers=-ephemeral-volume-controller"},

	{"TestBackgroundDeletion.*|TestForegroundDeletion.*|TestOrphanDeletion.*|TestDependentOfAnOwner.*", "--controllers=-garbage-collector-controller"},
	{"TestForegroundDeletionRemoves.*|TestForegroundDeletionWaits.*", "--kube-apiserver-arg=enable-garbage-collector=false"},
	{"TestNamespaceDisappears.*|TestNamespaceStaysTerminating.*", "--controllers=-namespace-controller"},

	{"TestBookmarkArrives.*|TestWatchFromBeforeARestart.*", "--kube-apiserver-arg=watch-cache=false"},
	{"TestInitialEventsEndWithABookmark", "--kube-apiserver-arg=feature-gates=WatchList=false"},
	{"TestWatchFromACompacted.*|TestListOfACompacted.*|TestContinuationOfACompacted.*", "--kube-apiserver-arg=etcd-compaction-interval=0"},

	{"TestLeaseElects.*|TestReleasedLease.*|TestExpiredLease.*", "--kube-apiserver-arg=runtime-config=coordination.k8s.io/v1=false --nodes=0"},
	{"TestImpersonationWithout.*|TestRBACRefuses.*|TestRoleBinding.*|TestNobodyGrants.*|TestAnonymousRequests.*", "--kube-apiserver-arg=authorization-mode=AlwaysAllow"},
	{"TestAnonymousRequests.*", "--kube-apiserver-arg=anonymous-auth=false"},

	{"TestEveryAcknowledgedWriteOutlivesKill|TestRestartedPlaneKeepsItsPort|TestSecondStart.*", "--ephemeral"},
	{"TestPlaneDiesWithItsParentWhenAsked", "--die-with-parent=false"},
}

// takeoutWithin limits how long a condition may take in the tests of a takeout. The first
// run, in which nothing is removed, shows that this limit is long enough.
const takeoutWithin = "20s"

func TestEachClaimFailsWhenItsPartIsTakenOut(t *testing.T) {
	if os.Getenv("KOBOSHI_TAKEOUT") == "" {
		t.Skip("runs the other tests again and again, which takes minutes; set KOBOSHI_TAKEOUT=1")
	}
	t.Run("nothing", func(t *testing.T) {
		var all []string
		for _, row := range takeouts {
			all = append(all, row.test)
		}
		if out, err := rerun(t, strings.Join(all, "|"), ""); err != nil {
			t.Fatalf("with nothing removed: %v\n%s", err, out)
		}
	})
	for _, row := range takeouts {
		t.Run(row.args+" "+row.test, func(t *testing.T) {
			t.Parallel()
			out, err := rerun(t, row.test, row.args)
			if err == nil {
				err = errors.New("nothing failed")
			} else {
				err = allFailedByThemselves(out)
			}
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// rerun runs tests of this binary again, with args added to the planes.
func rerun(t *testing.T, test, args string) (output string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.count=1", "-test.run=^("+test+")$")
	cmd.Env = append(os.Environ(), "KOBOSHI_TAKEOUT=", "KOBOSHI_UP_ARGS="+args, "KOBOSHI_WITHIN="+takeoutWithin)
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

var testResult = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+)`)

// allFailedByThemselves checks that no test passed, and that no test failed merely
// because the plane did not start.
func allFailedByThemselves(output string) error {
	for _, excuse := range []string{"koboshi up --die-with-parent", "the shared plane did not start", "the plane with programs did not start", "panic:"} {
		if strings.Contains(output, excuse) {
			return errors.New("a test failed for a reason other than its claim: " + excuse)
		}
	}
	results := testResult.FindAllStringSubmatch(output, -1)
	if len(results) == 0 {
		return errors.New("no test ran")
	}
	for _, r := range results {
		if r[1] != "FAIL" {
			return errors.New(r[2] + " is " + r[1])
		}
	}
	return nil
}
