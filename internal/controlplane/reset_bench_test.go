package controlplane

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/memory"
)

func BenchmarkResetOfADeploymentInProfileWorkloads(b *testing.B) { benchmarkDeployment(b, "workloads") }

func BenchmarkResetOfADeploymentInProfileFull(b *testing.B) { benchmarkDeployment(b, "full") }

// benchmarkDeployment measures the reset of a plane in which a Deployment has started two
// Pods. A process can run only one plane, so run one benchmark at a time.
func benchmarkDeployment(b *testing.B, profile string) {
	l := newLab(b, profile, 1)
	l.furnish()
	l.checkpoint()
	go memory.Settle(b.Context()) // as koboshi up does
	for b.Loop() {
		b.StopTimer()
		l.deploy("extra")
		b.StartTimer()
		l.reset()
	}
}
