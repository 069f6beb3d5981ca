package cri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// usage is the resource usage of a container: its processes, their total CPU
// time and their current memory.
type usage struct {
	processes uint64
	cpu       time.Duration
	resident  uint64 // in bytes; shared pages count once for each process
}

// tick is the unit of CPU time in /proc, which is the same for all programs
// (USER_HZ).
const tick = 10 * time.Millisecond

// measure returns the usage of all visible processes by pid namespace, which
// identifies the container.
func measure() (map[string]usage, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("measuring: %w", err)
	}
	all := map[string]usage{}
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		dir := filepath.Join("/proc", entry.Name())
		namespace, err := os.Readlink(filepath.Join(dir, "ns/pid"))
		if err != nil {
			continue // the process has ended
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		u := all[namespace]
		u.add(string(stat))
		all[namespace] = u
	}
	return all, nil
}

// These are fields of /proc/PID/stat, counted from zero after the name
// (proc_pid_stat(5) counts from three). The fields from fieldFirstTime to
// fieldLastTime are the user and system time of the process and of its ended
// children. fieldResident is the number of resident pages.
const (
	fieldFirstTime = 11
	fieldLastTime  = 14
	fieldResident  = 21
)

func (u *usage) add(stat string) {
	// The name of the process is in parentheses and may contain parentheses
	// itself.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= fieldResident || fields[0] == "Z" { // ended, but not reaped yet
		return
	}
	u.processes++
	for _, field := range fields[fieldFirstTime : fieldLastTime+1] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		u.cpu += time.Duration(ticks) * tick
	}
	pages, _ := strconv.ParseUint(fields[fieldResident], 10, 64)
	u.resident += pages * uint64(os.Getpagesize())
}

// usage returns the usage of the container. The caller must hold Runtime.mu.
func (p *process) usage(all map[string]usage) usage {
	if !p.runs() {
		return usage{}
	}
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.main.Pid))
	if err != nil {
		return usage{}
	}
	return all[namespace]
}

func (p *process) stats(u usage) *runtimeapi.ContainerStats {
	cpu, memory := u.messages()
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id: p.id, Metadata: p.config.GetMetadata(), Labels: p.config.GetLabels(), Annotations: p.config.GetAnnotations(),
		},
		Cpu: cpu, Memory: memory,
	}
}

func (u usage) messages() (*runtimeapi.CpuUsage, *runtimeapi.MemoryUsage) {
	now := time.Now().UnixNano()
	resident := &runtimeapi.UInt64Value{Value: u.resident}
	return &runtimeapi.CpuUsage{Timestamp: now, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: uint64(u.cpu)}},
		&runtimeapi.MemoryUsage{Timestamp: now, WorkingSetBytes: resident, UsageBytes: resident, RssBytes: resident}
}

// ContainerStats returns the usage of a container.
func (r *Runtime) ContainerStats(_ context.Context, id string) (*runtimeapi.ContainerStats, error) {
	all, err := measure()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.container(id)
	if err != nil {
		return nil, err
	}
	return p.stats(p.usage(all)), nil
}

// ListContainerStats returns the usage of the running containers that match the
// filter.
func (r *Runtime) ListContainerStats(_ context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	all, err := measure()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.ContainerStats
	for _, p := range r.running(func(p *process) bool {
		return matches(filter.GetId(), p.id) && matches(filter.GetPodSandboxId(), p.sandbox.id) &&
			selects(filter.GetLabelSelector(), p.config.GetLabels())
	}) {
		list = append(list, p.stats(p.usage(all)))
	}
	return list, nil
}

// PodSandboxStats returns the usage of a Pod.
func (r *Runtime) PodSandboxStats(_ context.Context, id string) (*runtimeapi.PodSandboxStats, error) {
	all, err := measure()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.sandbox(id)
	if err != nil {
		return nil, err
	}
	return r.stats(s, all), nil
}

// stats returns the usage of a sandbox. The caller must hold r.mu.
func (r *Runtime) stats(s *sandbox, all map[string]usage) *runtimeapi.PodSandboxStats {
	var sum usage
	linux := &runtimeapi.LinuxPodSandboxStats{}
	for _, p := range r.running(func(p *process) bool { return p.sandbox == s }) {
		u := p.usage(all)
		sum.processes, sum.cpu, sum.resident = sum.processes+u.processes, sum.cpu+u.cpu, sum.resident+u.resident
		linux.Containers = append(linux.Containers, p.stats(u))
	}
	linux.Cpu, linux.Memory = sum.messages()
	linux.Process = &runtimeapi.ProcessUsage{Timestamp: time.Now().UnixNano(), ProcessCount: &runtimeapi.UInt64Value{Value: sum.processes}}
	return &runtimeapi.PodSandboxStats{
		Attributes: &runtimeapi.PodSandboxAttributes{
			Id: s.id, Metadata: s.config.GetMetadata(), Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(),
		},
		Linux: linux,
	}
}

// ListPodSandboxStats returns the usage of the ready Pods that match the
// filter.
func (r *Runtime) ListPodSandboxStats(_ context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	all, err := measure()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*runtimeapi.PodSandboxStats
	for _, s := range r.sandboxes {
		if s.ready && matches(filter.GetId(), s.id) && selects(filter.GetLabelSelector(), s.config.GetLabels()) {
			list = append(list, r.stats(s, all))
		}
	}
	return list, nil
}

// ListMetricDescriptors returns no descriptors: the kubelet asks for them only
// if it is configured to take cAdvisor's metrics from the runtime.
func (r *Runtime) ListMetricDescriptors(context.Context) ([]*runtimeapi.MetricDescriptor, error) {
	return nil, nil
}

// ListPodSandboxMetrics returns no metrics.
func (r *Runtime) ListPodSandboxMetrics(context.Context) ([]*runtimeapi.PodSandboxMetrics, error) {
	return nil, nil
}
