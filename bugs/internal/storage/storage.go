// Package storage has a kind that stands for a PersistentVolumeClaim, because a real
// claim can be resized and deleted only where there is a driver for it.
package storage

import "github.com/koboshi-dev/koboshi/bugs/internal/object"

// ClaimSpec holds the claimed size in GiB.
type ClaimSpec struct {
	Size int `json:"size"`
}

// ClaimStatus is empty.
type ClaimStatus struct{}

type (
	// Claim stands for a PersistentVolumeClaim.
	Claim = object.Object[ClaimSpec, ClaimStatus]
	// ClaimList is a list of claims.
	ClaimList = object.List[ClaimSpec, ClaimStatus]
)

// Register adds the kind to the scheme.
func Register() { object.Register[ClaimSpec, ClaimStatus]("Claim") }
