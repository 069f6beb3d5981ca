package suite

import "testing"

func TestAScriptThatOnlyReadsIsRecognized(t *testing.T) {
	for _, script := range []string{
		"", "sleep 5", "kubectl get pods -n $NAMESPACE", "kubectl -n a logs b | grep ready", "# kubectl delete pod a\nkubectl wait --for=delete pod/a",
		"set -e\nif [ \"$(kubectl get pod a -o name)\" = x ]; then\n  exit 1\nfi", "kubectl rollout status deployment a 2>&1 >/dev/null",
		"kubectl exec a -- sh -c 'rm -rf /x; echo a | tee b'", "A=1 B=2 kubectl get a \\\n  -o yaml", "N=$(kubectl get pods | wc -l)\ntest $N = 3",
		"kubectl kuttl assert a.yaml --timeout 5", "for i in 1 2; do kubectl get a; done",
	} {
		if got := writes(script); got != "" {
			t.Errorf("%q: %q may write", script, got)
		}
	}
}

func TestAnyOtherScriptMayChangeTheCluster(t *testing.T) {
	for _, script := range []string{
		"kubectl apply -f a.yaml", "kubectl delete pod a", "./prepare.sh", "kubectl get pods; kubectl delete pod a", "kubectl get pods && helm install a",
		"kubectl get pods | xargs kubectl delete", "echo $(kubectl delete pod a)", "echo `kubectl delete pod a`", "echo \\\"; kubectl delete pod a; echo \\\"",
		"kubectl rollout restart deployment a", "cat <<EOF | kubectl apply -f -\nEOF", "bash -c 'kubectl delete pod a'", "kubectl", "$CMD pod a",
		"echo 'a", "echo \"$(kubectl delete pod a)\"", "kubectl get a # \n kubectl delete a", "diff <(kubectl delete a) b", "echo a'#' ; kubectl delete a",
		"if true; then kubectl delete a; fi", "(kubectl delete a)", "echo a$((1+2))",
	} {
		if writes(script) == "" {
			t.Errorf("%q counts as reading", script)
		}
	}
}
