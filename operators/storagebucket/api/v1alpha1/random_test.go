package v1alpha1

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// newFiller returns a filler that sets fields to random values that both Go and JSON
// can represent. A failed test logs the seed.
func newFiller(t *testing.T) *randfill.Filler {
	t.Helper()
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	return fillerOf(seed)
}

func fillerOf(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 4).Funcs(
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			m.Name = pick(c, names...)
			m.UID = types.UID(c.String(8))
			delete(m.Annotations, AnnotationBucketFromName)
			m.ManagedFields = nil // they would have to contain JSON, and only the API server sets them
		},
		func(t *metav1.Time, c randfill.Continue) { t.Time = time.Unix(c.Int63n(1<<33), 0) },
		func(t *metav1.MicroTime, c randfill.Continue) { t.Time = time.UnixMicro(c.Int63n(1 << 52)) },
		func(j *apiextensionsv1.JSON, c randfill.Continue) {
			j.Raw = fmt.Appendf(nil, `{"Version":"2012-10-17","n":%d,"s":%s}`, c.Int31(), quoted(c.String(0)))
		},
		func(d *metav1.Duration, c randfill.Continue) {
			d.Duration = pick(c, 0, defaultInterval, defaultIntervalV1, time.Duration(int64(c.Uint64())))
		},
		// Often, the bucket has the name of the object, and the endpoint, the region or the
		// name of the Secret is empty.
		func(s *StorageBucketSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Bucket = pick(c, names...)
			s.Endpoint = pick(c, "", s.Endpoint)
			s.Region = pick(c, "", s.Region)
			s.CredentialsSecretRef.Name = pick(c, "", s.CredentialsSecretRef.Name)
		},
		func(s *storagev1.StorageBucketSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			s.BucketName = pick(c, append(names, "")...)
			// In v1alpha1, an empty store cannot be distinguished from no store; v1's
			// schema rejects an empty store.
			if s.Store != nil && *s.Store == (storagev1.InlineStore{}) {
				s.Store = nil
			}
		},
	)
}

var names = []string{"photos", "films", "photos.example.com"}

func quoted(s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return text
}

func pick[T any](c randfill.Continue, from ...T) T { return from[c.Intn(len(from))] }
