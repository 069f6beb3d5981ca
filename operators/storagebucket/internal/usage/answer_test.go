package usage

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

func TestErrorOfStoreBecomesStatusWithItsTextAndReason(t *testing.T) {
	for reason, code := range map[s3store.Reason]int32{
		s3store.ReasonAccessDenied:        http.StatusForbidden,
		s3store.ReasonInvalidCredentials:  http.StatusForbidden,
		s3store.ReasonEndpointForbidden:   http.StatusForbidden,
		ReasonStoreNotAllowed:             http.StatusForbidden,
		s3store.ReasonTimeout:             http.StatusGatewayTimeout,
		s3store.ReasonThrottled:           http.StatusTooManyRequests,
		s3store.ReasonEndpointUnreachable: http.StatusServiceUnavailable,
		s3store.ReasonBucketNotFound:      http.StatusServiceUnavailable,
		ReasonStoreNotFound:               http.StatusServiceUnavailable,
		ReasonInternalError:               http.StatusInternalServerError,
	} {
		t.Run(string(reason), func(t *testing.T) {
			err := statusOf("photos", &s3store.Error{Reason: reason, Message: "fixed text", RetryAfter: time.Minute})
			var api apierrors.APIStatus
			if !errors.As(err, &api) {
				t.Fatalf("%T is no API status", err)
			}
			status := api.Status()
			if status.Code != code {
				t.Errorf("code %d instead of %d", status.Code, code)
			}
			want := &metav1.StatusDetails{
				Group: "usage.storage.koboshi.dev", Kind: "bucketusages", Name: "photos",
				Causes: []metav1.StatusCause{{Type: metav1.CauseType(reason), Message: "fixed text"}},
			}
			// The details have no retryAfterSeconds, because clients would silently wait
			// for that time.
			if diff := cmp.Diff(want, status.Details); diff != "" {
				t.Errorf("details differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorOfReadingStorageBucketsIsPassedOnOnlyWhenTheCallerCanMendIt(t *testing.T) {
	buckets := schema.GroupResource{Group: "storage.koboshi.dev", Resource: "storagebuckets"}
	for name, c := range map[string]struct {
		err  error
		code int32
	}{
		"a token that is too old":     {apierrors.NewResourceExpired("too old"), http.StatusGone},
		"an invalid token":            {apierrors.NewBadRequest("no token"), http.StatusBadRequest},
		"this program's rights":       {apierrors.NewForbidden(buckets, "", errors.New("User system:serviceaccount:x")), http.StatusServiceUnavailable},
		"no CustomResourceDefinition": {apierrors.NewGenericServerResponse(404, "get", buckets, "", "", 0, true), http.StatusServiceUnavailable},
		"an API server that is down":  {errors.New("dial tcp 10.0.0.1:443: connection refused"), http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var api apierrors.APIStatus
			if !errors.As(readingError(c.err), &api) || api.Status().Code != c.code {
				t.Errorf("%v instead of code %d", readingError(c.err), c.code)
			}
		})
	}
}

func TestTableShowsFiguresAsPeopleReadThem(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 20, 9, 8, 7, 0, time.FixedZone("", 3600)))
	usage := func(name string, objects, bytes int64) usagev1.BucketUsage {
		return usagev1.BucketUsage{
			ObjectMeta: metav1.ObjectMeta{Name: name}, BucketName: name + "-bucket", Store: "ns/store",
			Objects: &objects, Bytes: &bytes, MeasuredAt: at,
		}
	}
	list := &usagev1.BucketUsageList{
		ListMeta: metav1.ListMeta{Continue: "token"},
		Items: []usagev1.BucketUsage{usage("empty", 0, 0), usage("big", 1000000, 5<<30), {
			ObjectMeta: metav1.ObjectMeta{Name: "broken"}, BucketName: "broken-bucket", Store: "inline",
			MeasuredAt: at, Reason: "AccessDenied", Message: "fix it",
		}},
	}
	list.Items[1].Truncated = true
	table, err := (*Buckets)(nil).ConvertToTable(t.Context(), list, nil)
	if err != nil {
		t.Fatal(err)
	}
	var cells [][]any
	for _, r := range table.Rows {
		cells = append(cells, r.Cells)
	}
	const measured = "2026-11-20T08:08:07Z"
	want := [][]any{
		{"empty", "empty-bucket", "ns/store", "0", "0", measured, "", ""},
		{"big", "big-bucket", "ns/store", "1000000+", "5.00Gi+", measured, "", ""},
		{"broken", "broken-bucket", "inline", "-", "-", measured, "AccessDenied", "fix it"},
	}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("cells differ (-want +got):\n%s", diff)
	}
	if table.Continue != "token" {
		t.Error("the token to continue with is missing")
	}
	if len(table.ColumnDefinitions) != len(want[0]) {
		t.Errorf("%d columns for %d cells", len(table.ColumnDefinitions), len(want[0]))
	}
}

func TestSizesAreRoundedToThreeDigits(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0", 1023: "1023", 1024: "1.00Ki", 1536: "1.50Ki", 10239: "10.0Ki", 102348: "99.9Ki", 102400: "100Ki",
		1<<20 - 1: "1.00Mi", 1 << 20: "1.00Mi", 1023 << 20: "1023Mi", 1<<40 + 1<<39: "1.50Ti", 1<<63 - 1: "8.00Ei",
	} {
		if got := humanSize(bytes); got != want {
			t.Errorf("%d bytes: %s instead of %s", bytes, got, want)
		}
	}
}
