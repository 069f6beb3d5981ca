// Package manifest generates a project's CRDs, RBAC roles, webhook configurations and Go
// code from the markers in its Go files, with the generators of controller-tools.
package manifest

import (
	"fmt"

	"sigs.k8s.io/controller-tools/pkg/applyconfiguration"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/markers"
	"sigs.k8s.io/controller-tools/pkg/rbac"
	"sigs.k8s.io/controller-tools/pkg/schemapatcher"
	"sigs.k8s.io/controller-tools/pkg/webhook"
)

// generators lists the generators of controller-gen v0.23 by the names that they have on
// its command line.
var generators = map[string]genall.Generator{
	"applyconfiguration": applyconfiguration.Generator{},
	"crd":                crd.Generator{},
	"object":             deepcopy.Generator{},
	"rbac":               rbac.Generator{},
	"schemapatch":        schemapatcher.Generator{},
	"webhook":            webhook.Generator{},
}

// outputRules lists controller-gen's output rules by name.
var outputRules = map[string]genall.OutputRule{
	"artifacts": genall.OutputArtifacts{},
	"dir":       genall.OutputToDirectory(""),
	"none":      genall.OutputToNothing,
	"stdout":    genall.OutputToStdout,
}

// Options returns the options that controller-gen accepts on its command line. As in
// controller-gen, an option has the syntax of a marker without the plus sign.
func Options() (*markers.Registry, error) {
	options := &markers.Registry{}
	define := func(name string, value any) error {
		definition, err := markers.MakeDefinition(name, markers.DescribesPackage, value)
		if err != nil {
			return fmt.Errorf("defining the option %s: %w", name, err)
		}
		return options.Register(definition)
	}
	for name, generator := range generators {
		if err := define(name, generator); err != nil {
			return nil, err
		}
		for form, rule := range outputRules {
			if err := define("output:"+name+":"+form, rule); err != nil {
				return nil, err
			}
		}
	}
	for form, rule := range outputRules {
		if err := define("output:"+form, rule); err != nil {
			return nil, err
		}
	}
	return options, genall.RegisterOptionsMarkers(options)
}
