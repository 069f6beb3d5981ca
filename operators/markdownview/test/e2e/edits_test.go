package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/readers"
)

const bookPages = 6

func book(edition int) viewv1.MarkdownViewSpec {
	return viewv1.MarkdownViewSpec{Replicas: new(int32(2)), Markdowns: readers.Book(edition, bookPages)}
}

// publishBook publishes the first edition and starts readers.
func publishBook(t *testing.T) (*viewv1.MarkdownView, string, *readers.Crowd) {
	t.Helper()
	view := newView(t, book(1))
	site := publish(t, view)
	// The readers stop before the cleanup of the test, because the context of the test ends
	// before the cleanup.
	return view, site, must[*readers.Crowd](t)(readers.Gather(t.Context(), site))
}

func setEdition(edition int) func(*viewv1.MarkdownViewSpec) {
	return func(s *viewv1.MarkdownViewSpec) { s.Markdowns = readers.Book(edition, bookPages) }
}

// expectContent checks that all readers see an edition and no failures.
func expectContent(t *testing.T, crowd *readers.Crowd, edition int) {
	t.Helper()
	await(t, fmt.Sprintf("all readers to see edition %d", edition), func(context.Context) error {
		if newest := crowd.Report().Newest; slices.Min(newest) != edition {
			return fmt.Errorf("they saw %v", newest)
		}
		return nil
	})
	r := crowd.Disperse()
	t.Logf("%d requests; readers that keep several connections open saw %d pages of an older edition", r.Requests, r.Returned)
	if r.Failed > 0 || r.Mixed > 0 {
		t.Errorf("of %d requests, %d failed and %d returned mixed or older editions:\n%s", r.Requests, r.Failed, r.Mixed, strings.Join(r.Told, "\n"))
	}
}

func TestTenEditsFailNoReaderAndShowNobodyTwoEditions(t *testing.T) {
	view, site, crowd := publishBook(t)
	for edition := 2; edition <= 11; edition++ {
		edit(t, view, setEdition(edition))
		awaitServing(t, view)
		await(t, "the edit to be seen", func(ctx context.Context) error {
			home, err := read(ctx, site)
			if err != nil {
				return err
			}
			if got, err := readers.EditionOf(home.text); err != nil || got != edition {
				return fmt.Errorf("edition %d, %w", got, err)
			}
			return nil
		})
	}
	expectContent(t, crowd, 11)
}

func TestEditsFasterThanTheyAreRolledOutEndAtTheNewest(t *testing.T) {
	view, _, crowd := publishBook(t)
	for edition := 2; edition <= 11; edition++ {
		edit(t, view, setEdition(edition))
	}
	awaitServing(t, view)
	expectContent(t, crowd, 11)
}

func TestScaleAddsAndTakesViewersWithoutHarm(t *testing.T) {
	const title = "A site that grows"
	view := newView(t, book(1))
	view.Spec.Title = title
	view.Spec.Markdowns = readers.Book(1, bookPages)
	site := publish(t, view)
	crowd := must[*readers.Crowd](t)(readers.Gather(t.Context(), site))
	for _, n := range []int32{4, 1, 3} {
		scale(t, view, n)
		awaitServing(t, view)
		await(t, fmt.Sprintf("%d viewers", n), func(ctx context.Context) error {
			if err := world.Get(ctx, client.ObjectKeyFromObject(view), view); err != nil {
				return err
			}
			if s := view.Status; s.ReadyReplicas != n || s.Replicas != n {
				return fmt.Errorf("%d viewers of which %d are ready", s.Replicas, s.ReadyReplicas)
			}
			return countViewers(title, int(n))
		})
	}
	expectContent(t, crowd, 1)
}

func TestSuspendedSiteIsGoneAndComesBackWhereItWas(t *testing.T) {
	const title = "A site that sleeps"
	view := newView(t, book(1))
	view.Spec.Title = title
	site := publish(t, view)
	edit(t, view, func(s *viewv1.MarkdownViewSpec) { s.Suspend = true })
	await(t, "the viewers to exit", func(ctx context.Context) error {
		if home, err := read(ctx, site); err == nil {
			return fmt.Errorf("it is served: %d", home.status)
		}
		return countViewers(title, 0)
	})
	edit(t, view, func(s *viewv1.MarkdownViewSpec) {
		s.Suspend = false
		setEdition(2)(s)
	})
	awaitServing(t, view)
	again := must[string](t)(world.Address(t.Context(), patience, view))
	if again != site {
		t.Errorf("the site is at %s, but was at %s", again, site)
	}
	await(t, "the site to be back", func(ctx context.Context) error {
		_, err := read(ctx, site)
		return err
	})
	expectEdition(t, site, 2)
}

func TestImageThatDoesNotRunKeepsTheOldSite(t *testing.T) {
	view, _, crowd := publishBook(t)
	edit(t, view, func(s *viewv1.MarkdownViewSpec) {
		setEdition(2)(s)
		s.ViewerImage = brokenImage
	})
	await(t, "the problem to be reported", func(ctx context.Context) error {
		if err := world.Get(ctx, client.ObjectKeyFromObject(view), view); err != nil {
			return err
		}
		for _, c := range view.Status.Conditions {
			if c.Type == viewv1.ConditionDegraded && c.Status == "True" && c.Reason == viewv1.ReasonStalled {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", view.Status.Conditions)
	})
	if newest := crowd.Report().Newest; slices.Max(newest) != 1 {
		t.Errorf("readers saw %v", newest)
	}
	edit(t, view, func(s *viewv1.MarkdownViewSpec) { s.ViewerImage = "" })
	awaitServing(t, view)
	expectContent(t, crowd, 2)
}

func TestManagerThatIsRestartedInARolloutFinishesIt(t *testing.T) {
	view, _, crowd := publishBook(t)
	before := contentOf(t, view)
	edit(t, view, setEdition(2))
	await(t, "the new viewers to be started", func(ctx context.Context) error {
		if now, err := deployed(ctx, view); err != nil || now == before {
			return fmt.Errorf("still %s: %w", now, err)
		}
		return nil
	})
	world.Manager.Stop()
	if err := world.StartManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitServing(t, view)
	expectContent(t, crowd, 2)
}

func TestSiteIsServedWhileNoManagerRuns(t *testing.T) {
	view, _, crowd := publishBook(t)
	before := contentOf(t, view)
	edit(t, view, setEdition(2))
	await(t, "the new viewers to be started", func(ctx context.Context) error {
		if now, err := deployed(ctx, view); err != nil || now == before {
			return fmt.Errorf("still %s: %w", now, err)
		}
		return nil
	})
	world.Manager.Kill()
	killed := time.Now()
	defer func() {
		if err := world.StartManager(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitServing(t, view)
		expectContent(t, crowd, 2)
	}()
	// leaving is the time within which old viewers would exit if they were not held.
	const leaving = 15 * time.Second
	await(t, "the time in which old viewers would leave to pass", func(context.Context) error {
		if passed := time.Since(killed); passed < leaving {
			return fmt.Errorf("%v have passed", passed)
		}
		return nil
	})
	if r := crowd.Report(); r.Failed > 0 || r.Mixed > 0 {
		t.Errorf("of %d requests, %d failed and %d returned mixed or older editions:\n%s", r.Requests, r.Failed, r.Mixed, strings.Join(r.Told, "\n"))
	}
}

func TestManagerThatIsKilledAtRandomMomentsLosesNoReader(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("MARKDOWNVIEW_SEED"); given != "" {
		seed = must[uint64](t)(strconv.ParseUint(given, 10, 64))
	}
	t.Logf("MARKDOWNVIEW_SEED=%d repeats these moments", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	view, _, crowd := publishBook(t)
	const last = 9
	for edition := 2; edition <= last; edition++ {
		edit(t, view, setEdition(edition))
		moment := time.Duration(random.Int64N(int64(3 * time.Second)))
		select {
		case <-time.After(moment):
		case <-t.Context().Done():
		}
		world.Manager.Kill()
		t.Logf("killed %v after edit %d", moment, edition)
		if err := world.StartManager(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	awaitServing(t, view)
	expectContent(t, crowd, last)
}

// contentOf returns the content label of the Deployment of a site.
func contentOf(t *testing.T, view *viewv1.MarkdownView) string {
	t.Helper()
	return must[string](t)(deployed(t.Context(), view))
}

func deployed(ctx context.Context, view *viewv1.MarkdownView) (string, error) {
	var d appsv1.Deployment
	err := world.Get(ctx, client.ObjectKey{Namespace: view.Namespace, Name: "viewer-" + view.Name}, &d)
	return d.Spec.Template.Labels["view.koboshi.dev/content"], err
}
