package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// story is the part of a scenario that this test understands.
type story struct {
	Given []map[string]any `json:"given"`
	Steps []struct {
		Name   string           `json:"name"`
		Apply  []map[string]any `json:"apply"`
		Delete map[string]any   `json:"delete"`
		Expect []struct {
			APIVersion, Kind, Namespace, Name string

			Absent bool            `json:"absent"`
			Field  string          `json:"field"`
			Equals json.RawMessage `json:"equals"`
		} `json:"expect"`
	} `json:"steps"`
}

// The environment variable KOBOSHI names the program that runs the planes. BUGS names the
// program to test; if BUGS is not set, the program is built.
func TestEachControllerConvergesWithoutFaults(t *testing.T) {
	koboshi := os.Getenv("KOBOSHI")
	if koboshi == "" {
		t.Skip("KOBOSHI does not name the koboshi program")
	}
	program := os.Getenv("BUGS")
	if program == "" {
		program = filepath.Join(t.TempDir(), "bugs")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building the program: %v\n%s", err, out)
		}
	}
	ctrl.SetLogger(logr.Discard())
	files, err := filepath.Glob("[abcn]?-*/scenario.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario.yaml found: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		id, _, _ := strings.Cut(dir, "-")
		if catalogue[id] == nil {
			continue
		}
		for _, args := range [][]string{{id}, {id, "--repaired"}} {
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				converges(t, startPlane(t, koboshi), dir, append([]string{program}, args...))
			})
		}
	}
}

// converges runs the steps of a scenario, and checks the expectations after each step.
func converges(t *testing.T, kubeconfig, dir string, command []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	install(ctx, t, c, filepath.Join(dir, "crd.yaml"))
	start(t, kubeconfig, command)

	data, err := os.ReadFile(filepath.Join(dir, "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var s story
	if err := yaml.Unmarshal(data, &s); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	for i, step := range s.Steps {
		for _, object := range step.Apply {
			apply(ctx, t, c, object)
		}
		if step.Delete != nil {
			remove(ctx, t, c, step.Delete)
		}
		for j := range step.Expect {
			e := s.Steps[i].Expect[j]
			ref := &unstructured.Unstructured{}
			ref.SetAPIVersion(e.APIVersion)
			ref.SetKind(e.Kind)
			ref.SetNamespace(e.Namespace)
			ref.SetName(e.Name)
			until(ctx, t, fmt.Sprintf("step %s: %s %s %s = %s", step.Name, e.Kind, e.Name, e.Field, e.Equals), func() error {
				return look(ctx, c, ref, e.Absent, e.Field, e.Equals)
			})
		}
	}
}

func look(ctx context.Context, c client.Client, ref *unstructured.Unstructured, absent bool, field string, equals json.RawMessage) error {
	now := ref.DeepCopy()
	err := c.Get(ctx, client.ObjectKeyFromObject(ref), now)
	if absent {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it exists"))
	}
	if err != nil || field == "" {
		return err
	}
	var want any
	if err := json.Unmarshal(equals, &want); err != nil {
		return err
	}
	if number, ok := want.(float64); ok {
		want = int64(number)
	}
	have, _, err := unstructured.NestedFieldNoCopy(now.Object, strings.Split(field, ".")...)
	if err == nil && !equality.Semantic.DeepEqual(have, want) {
		err = fmt.Errorf("it is %v", have)
	}
	return err
}

func until(ctx context.Context, t *testing.T, what string, look func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = look()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, errors.Join(last, err))
	}
}

func apply(ctx context.Context, t *testing.T, c client.Client, object map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: object}
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("story"), client.ForceOwnership)
	if err != nil {
		t.Fatalf("applying %s %s: %v", u.GetKind(), u.GetName(), err)
	}
}

func remove(ctx context.Context, t *testing.T, c client.Client, ref map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": ref["apiVersion"], "kind": ref["kind"],
		"metadata": map[string]any{"namespace": ref["namespace"], "name": ref["name"]},
	}}
	if err := c.Delete(ctx, u); err != nil {
		t.Fatalf("deleting %s %s: %v", u.GetKind(), u.GetName(), err)
	}
	until(ctx, t, u.GetKind()+" to be gone", func() error { return look(ctx, c, u, true, "", nil) })
}

// install creates the CRDs and waits until they are served.
func install(ctx context.Context, t *testing.T, c client.Client, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	documents := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := documents.Decode(&u.Object); err != nil {
			break
		}
		if err := c.Create(ctx, u); err != nil {
			t.Fatalf("creating %s: %v", u.GetName(), err)
		}
		until(ctx, t, u.GetName()+" to be served", func() error {
			group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(group + "/v1")
			list.SetKind(kind + "List")
			return c.List(ctx, list)
		})
	}
}

// startPlane runs a plane until the test ends, and returns the path of its kubeconfig.
func startPlane(t *testing.T, koboshi string) string {
	t.Helper()
	dir := t.TempDir()
	ready, kubeconfig := filepath.Join(dir, "ready"), filepath.Join(dir, "kubeconfig")
	start(t, "", []string{koboshi, "up", "--profile", "gc", "--ephemeral", "--die-with-parent",
		"--ready-file", ready, "--kubeconfig", kubeconfig})
	until(t.Context(), t, "the plane to be ready", func() error {
		_, err := os.Stat(ready)
		return err
	})
	return kubeconfig
}

// start runs a command until the test ends, and shows its output if the test failed.
func start(t *testing.T, kubeconfig string, command []string) {
	t.Helper()
	var output strings.Builder
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() && kubeconfig != "" {
			t.Logf("output of %s:\n%s", strings.Join(command, " "), output.String())
		}
	})
}
