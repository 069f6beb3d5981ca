package lab

import "testing"

func TestTwoChecksOnOneMachineHaveDifferentAddresses(t *testing.T) {
	first, taken := claim(maxLabs)
	defer func() { _ = taken.Close() }()
	second, also := claim(first)
	if also == nil {
		t.Fatal("there were no addresses for a second lab")
	}
	defer func() { _ = also.Close() }()
	if first == second {
		t.Errorf("both have number %d", first)
	}
	if addressOf(first, 0) == addressOf(second, 0) || !addressOf(second, 1).IsLoopback() {
		t.Errorf("the addresses are %s and %s", addressOf(first, 0), addressOf(second, 0))
	}
}

func TestAddressesAreFreeAfterALabEnds(t *testing.T) {
	// The labs of suites that run at the same time take small numbers.
	first, taken := claim(maxLabs / 2)
	if taken == nil {
		t.Fatal("there were no addresses for a lab")
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	second, again := claim(first)
	defer func() { _ = again.Close() }()
	if first != second {
		t.Errorf("number %d was released, but the next lab got %d", first, second)
	}
}
