// Package install makes the manifest with which others install an operator.
//
//	objects of config/default ──SetImage──▶ the image that was built ──YAML──▶ install.yaml
package install

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"
)

// SetImage replaces an image in all containers, and in arguments and variables that name the same
// image, because an operator may start Pods from its own image. It returns the number of containers
// whose image was replaced. The objects themselves are changed.
func SetImage(objects []unstructured.Unstructured, from, to string) (containers int) {
	for _, o := range objects {
		eachContainer(o.Object, func(c map[string]any) {
			if c["image"] == from {
				c["image"] = to
				containers++
			}
			for _, field := range []string{"command", "args"} {
				list, _ := c[field].([]any)
				for i, arg := range list {
					list[i] = named(arg, from, to)
				}
			}
			variables, _ := c["env"].([]any)
			for _, v := range variables {
				if variable, ok := v.(map[string]any); ok && variable["value"] == from {
					variable["value"] = to
				}
			}
		})
	}
	return containers
}

// named replaces an image in an argument, which may be the image itself or --flag=IMAGE.
func named(arg any, from, to string) any {
	text, ok := arg.(string)
	if !ok {
		return arg
	}
	flag, value, found := strings.Cut(text, "=")
	switch {
	case text == from:
		return to
	case found && value == from && strings.HasPrefix(flag, "-"):
		return flag + "=" + to
	}
	return arg
}

// Programs returns the paths of the programs that containers start from an image, as their
// commands name them.
func Programs(objects []unstructured.Unstructured, image string) (paths []string) {
	for _, o := range objects {
		eachContainer(o.Object, func(c map[string]any) {
			command, _ := c["command"].([]any)
			if c["image"] != image || len(command) == 0 {
				return
			}
			if path, ok := command[0].(string); ok && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		})
	}
	return paths
}

// Extend adds arguments, and variables as NAME=VALUE, to the containers that start a program from an image.
// An empty program stands for containers without a command. It returns the number of such containers. The
// objects themselves are changed.
func Extend(objects []unstructured.Unstructured, image, program string, args, env []string) (containers int) {
	for _, o := range objects {
		eachContainer(o.Object, func(c map[string]any) {
			var started any = ""
			if command, _ := c["command"].([]any); len(command) > 0 {
				started = command[0]
			}
			if c["image"] != image || started != program {
				return
			}
			containers++
			for _, arg := range args {
				list, _ := c["args"].([]any)
				c["args"] = append(list, arg)
			}
			for _, variable := range env {
				name, value, _ := strings.Cut(variable, "=")
				list, _ := c["env"].([]any)
				c["env"] = append(list, map[string]any{"name": name, "value": value})
			}
		})
	}
	return containers
}

// eachContainer calls do for each container in a part of an object. It finds the Pod templates of
// all kinds, also those of other projects, by the names of their fields.
func eachContainer(part any, do func(map[string]any)) {
	switch part := part.(type) {
	case []any:
		for _, item := range part {
			eachContainer(item, do)
		}
	case map[string]any:
		for _, field := range []string{"initContainers", "containers"} {
			list, _ := part[field].([]any)
			for _, item := range list {
				if c, ok := item.(map[string]any); ok && c["image"] != nil {
					do(c)
				}
			}
		}
		for field, item := range part {
			if field != "initContainers" && field != "containers" {
				eachContainer(item, do)
			}
		}
	}
}

// Sort sorts objects in the order in which kustomize prints them, so that each object can be
// created when its turn comes. Objects of one kind keep their order.
func Sort(objects []unstructured.Unstructured) {
	kind := func(o unstructured.Unstructured) resid.Gvk {
		gvk := o.GroupVersionKind()
		return resid.NewGvk(gvk.Group, gvk.Version, gvk.Kind)
	}
	slices.SortStableFunc(objects, func(a, b unstructured.Unstructured) int {
		switch x, y := kind(a), kind(b); {
		case x.IsLessThan(y):
			return -1
		case y.IsLessThan(x):
			return 1
		}
		return 0
	})
}

// YAML returns the objects as one text.
func YAML(header string, objects []unstructured.Unstructured) ([]byte, error) {
	var text bytes.Buffer
	text.WriteString(header)
	for i, o := range objects {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("writing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(data)
	}
	return text.Bytes(), nil
}
