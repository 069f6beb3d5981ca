package cri

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestUnknownIsNotFoundAsTheKubeletAsksForIt(t *testing.T) {
	p := newPlane(t)
	_, box := p.ContainerStatus(t.Context(), "x", false)
	_, pod := p.PodSandboxStatus(t.Context(), "x", false)
	_, stats := p.ContainerStats(t.Context(), "x")
	for _, err := range []error{box, pod, stats, p.StartContainer(t.Context(), "x")} {
		if status.Code(err) != codes.NotFound {
			t.Error(err)
		}
	}
}

func TestRuntimeIsReady(t *testing.T) {
	p := newPlane(t)
	answer, err := p.Status(t.Context(), false)
	if err != nil || len(answer.GetStatus().GetConditions()) != 2 {
		t.Fatalf("%v, %v", answer, err)
	}
	for _, c := range answer.GetStatus().GetConditions() {
		if !c.GetStatus() {
			t.Error(c)
		}
	}
	if err := p.CheckpointContainer(t.Context(), nil); status.Code(err) != codes.Unimplemented {
		t.Error(err)
	}
}

func TestEventsTellOfChanges(t *testing.T) {
	p := newPlane(t)
	ctx, cancel := context.WithCancel(t.Context())
	events, connected, ended := make(chan *runtimeapi.ContainerEventResponse, 100), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- p.GetContainerEvents(ctx, events, func(runtimeapi.RuntimeService_GetContainerEventsClient) { close(connected) })
	}()
	<-connected
	pod := p.pod()
	b := pod.start(containerConfig("exit", "3"))
	b.exited()
	if err := p.RemovePodSandbox(t.Context(), pod.id); err != nil {
		t.Fatal(err)
	}
	const created, started, stopped, deleted = runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
		runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT
	for _, want := range []struct {
		id   string
		what runtimeapi.ContainerEventType
	}{
		{pod.id, created}, {pod.id, started}, {b.id, created}, {b.id, started}, {b.id, stopped},
		{pod.id, stopped}, {b.id, deleted}, {pod.id, deleted},
	} {
		got := <-events
		if got.GetContainerId() != want.id || got.GetContainerEventType() != want.what || got.GetPodSandboxStatus().GetId() != pod.id {
			t.Errorf("got %v of %s, want %v of %s", got.GetContainerEventType(), got.GetContainerId(), want.what, want.id)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestStatsAreThoseOfTheProcesses(t *testing.T) {
	p := newPlane(t)
	pod := p.pod()
	b := pod.start(containerConfig("spawn", "block", ";", "burn", ";", "block"))
	pod.start(containerConfig("block"))
	b.says("burnt")
	stats, err := p.ContainerStats(t.Context(), b.id)
	if err != nil {
		t.Fatal(err)
	}
	cpu, memory := stats.GetCpu().GetUsageCoreNanoSeconds().GetValue(), stats.GetMemory().GetWorkingSetBytes().GetValue()
	if cpu < 180e6 || cpu > 60e9 || memory < 1<<20 || memory > 10<<30 {
		t.Errorf("%d ns, %d bytes", cpu, memory)
	}
	list, err := p.ListPodSandboxStats(t.Context(), &runtimeapi.PodSandboxStatsFilter{Id: pod.id})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if n := list[0].GetLinux().GetProcess().GetProcessCount().GetValue(); n != 3 || len(list[0].GetLinux().GetContainers()) != 2 {
		t.Errorf("%d processes in %d containers", n, len(list[0].GetLinux().GetContainers()))
	}
	if all, err := p.ListContainerStats(t.Context(), nil); err != nil || len(all) != 2 {
		t.Errorf("%d containers, %v", len(all), err)
	}
}
