package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// randomUIDs returns version 4 UUIDs, as the API server creates them.
func randomUIDs(seed uint64, n int) []types.UID {
	r := rand.New(rand.NewPCG(seed, 0))
	uids := make([]types.UID, n)
	for i := range uids {
		a, b := r.Uint64(), r.Uint64()
		uids[i] = types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
			a>>32, a>>16&0xffff, a&0xfff, b>>48&0x3fff|0x8000, b&0xffffffffffff))
	}
	return uids
}

func TestTenThousandObjectsAMinuteHaveAPeakOfAtMostOneAndAHalfTimesTheMean(t *testing.T) {
	const objects, interval = 10_000, time.Minute
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p, c := newPlan()
			subjects := map[types.NamespacedName]Subject{}
			for i, uid := range randomUIDs(seed, objects) {
				s := settled(fmt.Sprint(i))
				s.UID, s.Interval = uid, interval
				p.Due(s)
				subjects[s.Key] = s
			}
			peak, total := 0, 0
			seen := map[types.NamespacedName]int{}
			for range 2 * 60 {
				advance(c, time.Second)
				due := announced(p)
				peak, total = max(peak, len(due)), total+len(due)
				for _, a := range due {
					seen[a.Object]++
					p.Probed(subjects[a.Object], 0)
				}
			}
			for key, n := range seen {
				if n != 2 {
					t.Fatalf("%v announced %d times in two intervals", key, n)
				}
			}
			mean := float64(total) / 120
			t.Logf("peak %d, mean %.1f, ratio %.2f", peak, mean, float64(peak)/mean)
			if total != 2*objects || float64(peak) > 1.5*mean {
				t.Errorf("%d announcements, peak %d, mean %.1f", total, peak, mean)
			}
		})
	}
}

func TestRestartProbesNothingThatIsFresh(t *testing.T) {
	for name, test := range map[string]struct{ heartbeat, age time.Duration }{
		"every probe is written":     {age: time.Second},
		"only a heartbeat every 10m": {heartbeat: 10 * time.Minute, age: 10*time.Minute + 20*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p, c := newPlan()
			for i := range 100 {
				s := subject(fmt.Sprint(i))
				s.Interval, s.Heartbeat = time.Hour, test.heartbeat
				s.Fresh, s.LastProbe = true, start.Add(-test.age)
				wantTurn(t, p, s, Turn{})
			}
			// Each object has one slot per hour, so a minute contains about one in sixty
			// of the slots.
			advance(c, time.Minute)
			if n := len(announced(p)); n > 10 {
				t.Errorf("%d of 100 announced in the first minute", n)
			}
		})
	}
}

func TestObjectsAreSpreadOverTheInterval(t *testing.T) {
	for name, lastProbe := range map[string]time.Duration{
		"after a short restart": -time.Second,
		"after a long outage":   -24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			p, c := newPlan()
			advance(c, 11*time.Second) // not at the start of an interval
			const objects, parts = 3000, 30
			for i := range objects {
				s := subject(fmt.Sprint(i))
				s.Fresh, s.LastProbe = true, start.Add(lastProbe)
				p.Due(s)
			}
			for second := range parts {
				advance(c, time.Second)
				due := announced(p)
				if n := len(due); n < 60 || n > 150 {
					t.Errorf("second %d: %d objects of %d, want about %d", second, n, objects, objects/parts)
				}
			}
		})
	}
}

func TestMissedSlotOfALongIntervalIsCaughtUpSoon(t *testing.T) {
	p, c := newPlan()
	for i := range 100 {
		s := subject(fmt.Sprint(i))
		s.Interval, s.Fresh, s.LastProbe = 24*time.Hour, true, start.Add(-48*time.Hour)
		s.Heartbeat = 10 * time.Minute
		p.Due(s)
	}
	advance(c, catchUp)
	if n := len(announced(p)); n != 100 {
		t.Errorf("%d of 100 announced in the time for catching up", n)
	}
}

func TestSlotsStayWhereTheyAreWhenAProbeIsLate(t *testing.T) {
	uid, interval := types.UID("x"), time.Minute
	slot := start.Add(untilSlot(start, uid, interval))
	for late := time.Duration(0); late < interval; late += 7 * time.Second {
		now := slot.Add(late)
		if next := now.Add(untilSlot(now, uid, interval)); !next.Equal(slot.Add(interval)) {
			t.Errorf("%v late: next slot %v, want %v", late, next, slot.Add(interval))
		}
	}
}

func TestTimeoutIsShorterThanTheInterval(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		time.Second:      800 * time.Millisecond,
		5 * time.Second:  4 * time.Second,
		30 * time.Second: 5 * time.Second,
	} {
		if got := Timeout(5*time.Second, interval); got != want {
			t.Errorf("%v: got %v, want %v", interval, got, want)
		}
	}
}

func TestNextSlotIsAheadAndAtMostAnIntervalAway(t *testing.T) {
	times := []int64{0, -1, 1, start.UnixNano(), -start.UnixNano(), 1 << 62, -(1 << 62)}
	intervals := []time.Duration{1, 7, time.Second, time.Hour, 1 << 62}
	for _, nanos := range times {
		for _, interval := range intervals {
			for _, uid := range []types.UID{"", "x", "c5f9a3e8-2d1a-4a55-9a53-5a3c1f0d2b11"} {
				if d := untilSlot(time.Unix(0, nanos), uid, interval); d <= 0 || d > interval {
					t.Errorf("at %d, interval %v, UID %q: got %v", nanos, interval, uid, d)
				}
			}
		}
	}
}

func TestComingBackMeansOneProbeAndNotAnotherForTheSlotRightAfter(t *testing.T) {
	const objects, interval = 3000, time.Minute
	p, c := newPlan()
	advance(c, 17*time.Second)
	subjects := map[types.NamespacedName]Subject{}
	for i := range objects {
		s := subject(fmt.Sprint(i))
		s.Interval, s.Fresh, s.LastProbe = interval, true, start.Add(-time.Hour)
		p.Due(s)
		subjects[s.Key] = s
	}
	seen := map[types.NamespacedName]int{}
	for range int(catchUp / (100 * time.Millisecond)) {
		advance(c, 100*time.Millisecond)
		for _, a := range announced(p) {
			seen[a.Object]++
			p.Probed(subjects[a.Object], 0)
		}
	}
	if len(seen) != objects {
		t.Errorf("%d of %d came back in %v", len(seen), objects, catchUp)
	}
	for key, n := range seen {
		if n != 1 {
			t.Fatalf("%v probed %d times in %v", key, n, catchUp)
		}
	}
}
