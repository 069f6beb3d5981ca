package judge

// LedgerRight reports whether the external resources after the step match the reference,
// as far as they can be compared.
func (r *Reference) LedgerRight(step string, lines []string) bool {
	s := r.find(step)
	if s == nil || s.NoLedger {
		return true
	}
	got := canonicalLedger(lines)
	if s.Counted {
		return len(got) == len(s.Ledger)
	}
	return len(beyond(got, s.Ledger)) == 0 && len(beyond(s.Ledger, got)) == 0
}
