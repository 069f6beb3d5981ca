// Package storage has a kind that stands for a PersistentVolumeClaim: a real one
// can be resized and deleted only where there is a driver for it.
package storage

import "github.com/koboshi-dev/koboshi/bugs/internal/object"

// ClaimSpec is how much is claimed, in GiB.
type ClaimSpec struct {
	Size int `json:"size"`
}

// ClaimStatus is empty.
type ClaimStatus struct{}

type (
	// Claim is a kind that is reconciled.
	Claim = object.Object[ClaimSpec, ClaimStatus]
	// ClaimList is a list of them.
	ClaimList = object.List[ClaimSpec, ClaimStatus]
)

// Register makes the scheme know it.
func Register() { object.Register[ClaimSpec, ClaimStatus]("Claim") }
