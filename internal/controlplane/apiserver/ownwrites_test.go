package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// answering simulates a server that has stored the CRD in body.
type answering struct{ body []byte }

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

func crdAt(version string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com", ResourceVersion: version}}
}

// ask makes a request whose answer is the CRD at version 7. At first the informer holds the CRD
// from the parameter known; after several checks, it receives the CRD from the parameter news.
func ask(t *testing.T, method string, known, news *apiextensionsv1.CustomResourceDefinition) (took time.Duration) {
	t.Helper()
	codec := apiextensionsscheme.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion)
	written, err := runtime.Encode(codec, crdAt("7"))
	if err != nil {
		t.Fatal(err)
	}
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &apiextensionsv1.CustomResourceDefinition{}, 0, nil)
	if known != nil {
		if err := informer.GetStore().Add(known); err != nil {
			t.Fatal(err)
		}
	}
	var writes ownWrites
	writes.from(informer)
	request, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if news != nil {
		time.AfterFunc(10*ownWriteLook, func() { _ = informer.GetStore().Update(news) })
	}
	response, err := ownWritesTransport{&writes, answering{written}}.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	took = time.Since(began)
	if got, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(got, written) {
		t.Errorf("the answer is %q, %v; the server's was %q", got, err, written)
	}
	return took
}

func TestAStatusOfACRDIsWrittenWhenTheInformerHasIt(t *testing.T) {
	for name, test := range map[string]struct {
		method      string
		known, news *apiextensionsv1.CustomResourceDefinition
		least, most time.Duration
	}{
		"it has it":           {http.MethodPut, crdAt("7"), nil, 0, 0},
		"it has a newer one":  {http.MethodPut, crdAt("10"), nil, 0, 0},
		"it has none":         {http.MethodPut, nil, nil, 0, 0},
		"it learns of it":     {http.MethodPut, crdAt("6"), crdAt("7"), 10 * ownWriteLook, 11 * ownWriteLook},
		"it learns of a next": {http.MethodPut, crdAt("6"), crdAt("11"), 10 * ownWriteLook, 11 * ownWriteLook},
		"it never learns":     {http.MethodPut, crdAt("6"), nil, ownWriteLimit, ownWriteLimit + ownWriteLook},
		"nothing was written": {http.MethodGet, crdAt("6"), nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if took := ask(t, test.method, test.known, test.news); took < test.least || took > test.most {
					t.Errorf("answered after %v, not between %v and %v", took, test.least, test.most)
				}
			})
		})
	}
}
