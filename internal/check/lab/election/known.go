package election

import (
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// Known holds the Leases with which the instances of the controller elect a leader. A
// controller may also write Leases for other purposes, so a Lease counts only if
//
//   - each instance that writes the Lease does so before any other work,
//   - two instances have held it under different names, and
//   - no object owns it.
//
// A restarted instance has to wait for the Lease only if the instances hold it under different
// names.
type Known struct {
	mu      sync.Mutex
	holders map[string]map[string]bool // by the name of the Lease
	other   map[string]bool            // Leases for another purpose
	trusted map[string]bool            // learned in another lab
}

// NewKnown returns a Known without Leases.
func NewKnown() *Known {
	return &Known{holders: map[string]map[string]bool{}, other: map[string]bool{}, trusted: map[string]bool{}}
}

// Learn reads the Leases of a run.
func (k *Known) Learn(out *evidence.Run) {
	changed := map[string]state.Change{}
	for _, c := range out.History.Changes {
		if c.After != nil && Is(c.Ref, c.After) {
			changed[strconv.FormatInt(c.Revision, 10)] = c
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	type writer struct{ instance, lease string }
	worked, early := map[string]bool{}, map[writer]bool{}
	for i := range out.Entries {
		entry := &out.Entries[i]
		if entry.Call == nil || entry.Instance == "" || entry.Call.Code >= 300 {
			continue
		}
		if request.IsWork(entry.Call) {
			worked[entry.Instance] = true
		}
		c, ok := changed[entry.Call.ResourceVersion]
		if !ok || !request.IsElection(entry.Call) || !request.IsWrite(entry.Call) {
			continue
		}
		w := writer{entry.Instance, nameOf(c.Ref)}
		early[w] = early[w] || !worked[w.instance]
		k.note(c.Ref, c.After, early[w])
	}
}

func (k *Known) note(ref state.Ref, object state.Object, early bool) {
	name := nameOf(ref)
	if !early || len(object.Owners()) > 0 {
		k.other[name] = true
	}
	holder := Read(ref, object).Holder
	if holder == "" {
		return
	}
	if k.holders[name] == nil {
		k.holders[name] = map[string]bool{}
	}
	k.holders[name][holder] = true
}

// Trust adds Leases that another lab has recognized as elections.
func (k *Known) Trust(names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		k.trusted[name] = true
	}
}

// Names lists the Leases with which a leader is elected: "namespace/name" for a Lease, and
// "Kind/namespace/name" for any other object.
func (k *Known) Names() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := maps.Clone(k.trusted)
	for name, holders := range k.holders {
		all[name] = all[name] || len(holders) > 1
	}
	for name, elects := range all {
		if elects && !k.other[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
