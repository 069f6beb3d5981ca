package loopback

import "testing"

func TestTwoHoldersOnOneMachineHaveDifferentAddresses(t *testing.T) {
	first, taken := Claim(Max)
	defer func() { _ = taken.Close() }()
	second, also := Claim(first)
	if also == nil {
		t.Fatal("there were no addresses for a second holder")
	}
	defer func() { _ = also.Close() }()
	if first == second {
		t.Errorf("both have number %d", first)
	}
	if Address(first, 0) == Address(second, 0) || !Address(second, 1).IsLoopback() {
		t.Errorf("the addresses are %s and %s", Address(first, 0), Address(second, 0))
	}
}

func TestAddressesAreFreeAfterAHolderEnds(t *testing.T) {
	// The labs of suites that run at the same time take small numbers.
	first, taken := Claim(Max / 2)
	if taken == nil {
		t.Fatal("there were no addresses for a holder")
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	second, again := Claim(first)
	defer func() { _ = again.Close() }()
	if first != second {
		t.Errorf("number %d was released, but the next holder got %d", first, second)
	}
}
