// Package place names where things are in the image that koboshi ship makes for koboshi check --on-cluster.
package place

// Paths in the image.
const (
	// Program is the koboshi program.
	Program = "/koboshi"
	// Manager is the program to check.
	Manager = "/check/manager"
	// Project is the folder of the project.
	Project = "/check/project"
	// Plan is the folder at which a shard sees the ConfigMap with the plan.
	Plan = "/check/plan"
)
