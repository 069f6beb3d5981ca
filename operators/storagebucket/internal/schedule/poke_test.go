package schedule

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func urgent(s Subject) Announcement { return Announcement{Object: s.Key, Urgent: true} }

// wantAnnounced checks what is announced now.
func wantAnnounced(t *testing.T, p *Plan, want ...Announcement) {
	t.Helper()
	got := announced(p)
	if len(got) != len(want) {
		t.Fatalf("announced %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("announced %v, want %v", got, want)
		}
	}
}

func TestPokedObjectIsAnnouncedUrgentlyAndDueNow(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	p.Due(s)
	p.Poke(s.Key)
	wantAnnounced(t, p, urgent(s))
	advance(c, time.Millisecond)
	wantTurn(t, p, s, Turn{Cause: Poked, Lag: time.Millisecond})
	p.Probed(s, 0)
	wantTurn(t, p, s, Turn{})
	wantAnnounced(t, p)
}

func TestPokeOfAnUnknownObjectIsKeptUntilItIsSeen(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	p.Poke(s.Key)
	wantAnnounced(t, p, urgent(s))
	advance(c, time.Second)
	wantTurn(t, p, s, Turn{Cause: Poked, Lag: time.Second})
	p.Probed(s, 0)
	wantTurn(t, p, s, Turn{})
}

func TestPokeOfWhatDoesNotExistIsAnnouncedOnceAndCanBeForgotten(t *testing.T) {
	p, c := newPlan()
	key := types.NamespacedName{Namespace: "default", Name: "nobody"}
	p.Poke(key)
	wantAnnounced(t, p, Announcement{Object: key, Urgent: true})
	advance(c, time.Hour)
	if due, wait := p.announce(); len(due) != 0 || wait >= 0 {
		t.Errorf("announced %v again, wait %v", due, wait)
	}
	p.Forget(key)
	if p.Len() != 0 {
		t.Error("not forgotten")
	}
}

func TestPokesWithinASecondAreMergedAndTheLastIsNotLost(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	s.Interval = time.Hour
	p.Due(s)
	probes := 0
	probe := func() {
		for range announced(p) {
			if p.Due(s).Cause == "" {
				continue
			}
			// A poke may also come while the probe is in progress.
			p.Poke(s.Key)
			p.Probed(s, 0)
			probes++
		}
	}
	last := time.Duration(0)
	for range 1000 { // ten seconds of pokes, 10 ms apart
		p.Poke(s.Key)
		probe()
		advance(c, 10*time.Millisecond)
		last += 10 * time.Millisecond
	}
	if probes < 9 || probes > 11 {
		t.Errorf("%d probes in ten seconds of pokes", probes)
	}
	before := probes
	p.Poke(s.Key)
	advance(c, mergePokes)
	probe()
	if probes != before+1 {
		t.Errorf("the last poke was followed by %d probes", probes-before)
	}
}

func TestPokeDuringAProbeIsFollowedByAnotherProbe(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	p.Poke(s.Key)
	wantAnnounced(t, p, urgent(s))
	wantTurn(t, p, s, Turn{Cause: Poked})
	advance(c, 100*time.Millisecond)
	p.Poke(s.Key)
	p.Probed(s, 0)
	wantTurn(t, p, s, Turn{})
	wantAnnounced(t, p)
	advance(c, 900*time.Millisecond)
	wantAnnounced(t, p, urgent(s))
	wantTurn(t, p, s, Turn{Cause: Poked})
}

func TestStreamOfPokesDoesNotKeepAnObjectFromBeingDue(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	s.Interval = time.Hour
	p.Due(s)
	p.Poke(s.Key)
	for i := range 500 {
		advance(c, 10*time.Millisecond)
		p.Poke(s.Key)
		if i%100 == 50 { // the controller calls Due
			if turn := p.Due(s); turn.Cause != Poked {
				t.Fatalf("after %d pokes: %+v", i, turn)
			}
		}
	}
}

func TestPokeThatNobodyTookUpIsAnnouncedAgainByTheNextPoke(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	s.Interval = time.Hour
	p.Due(s)
	p.Poke(s.Key)
	wantAnnounced(t, p, urgent(s))
	advance(c, 10*time.Second)
	p.Poke(s.Key)
	wantAnnounced(t, p, urgent(s))
	wantTurn(t, p, s, Turn{Cause: Poked, Lag: 10 * time.Second})
}

func TestSlotServesAPokeThatIsAboutToTakeEffect(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	s.Interval = time.Second
	p.Due(s)
	p.Poke(s.Key)
	p.Due(s)
	p.Probed(s, 0)
	p.Poke(s.Key) // takes effect in a second
	advance(c, untilSlot(c.Now(), s.UID, s.Interval))
	wantTurn(t, p, s, Turn{Cause: Poked})
}

func TestPokeWakesAParkedObject(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	p.Park(s)
	p.Poke(s.Key)
	p.Park(s) // the store is still down, and the poke has not been announced yet
	wantAnnounced(t, p, urgent(s))
	p.Park(s) // the announcement did not lead to a probe
	advance(c, time.Hour)
	wantAnnounced(t, p)
	// The store is up again. The poke was kept, and the lag does not include the time
	// while the store was down.
	wantTurn(t, p, s, Turn{Cause: Poked})
	p.Probed(s, 0)
	wantTurn(t, p, s, Turn{})
}

func TestPostponedPokeStaysUrgent(t *testing.T) {
	p, c := newPlan()
	s := settled("a")
	p.Poke(s.Key)
	wantAnnounced(t, p, urgent(s))
	p.Due(s)
	p.Postpone(s, 100*time.Millisecond)
	wantAnnounced(t, p)
	advance(c, 100*time.Millisecond)
	wantAnnounced(t, p, urgent(s))
	wantTurn(t, p, s, Turn{Cause: Poked, Lag: 100 * time.Millisecond})
}

func TestUrgentObjectsAreAnnouncedFirst(t *testing.T) {
	p, c := newPlan()
	for _, name := range []string{"a", "b", "c", "d"} {
		p.Due(subject(name))
	}
	s := settled("poked")
	s.Interval = time.Hour
	p.Due(s)
	advance(c, time.Millisecond)
	p.Poke(s.Key)
	got := announced(p)
	if len(got) != 5 || got[0] != urgent(s) {
		t.Errorf("announced %v", got)
	}
}
