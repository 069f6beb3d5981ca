package apitest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("The samples", func() {
	dir := filepath.Join("..", "..", "config", "samples")
	files, err := filepath.Glob(filepath.Join(dir, "storage_*.yaml"))

	It("are there", func() {
		Expect(err).NotTo(HaveOccurred())
		Expect(len(files)).To(BeNumerically(">=", 4))
	})

	for _, file := range files {
		It("are accepted, with no field unknown: "+filepath.Base(file), func(ctx context.Context) {
			namespace := newNamespace(ctx)
			strict := client.WithFieldValidation(api, metav1.FieldValidationStrict)
			f, err := os.Open(file)
			Expect(err).NotTo(HaveOccurred())
			defer func() { Expect(f.Close()).To(Succeed()) }()
			documents := yaml.NewYAMLOrJSONDecoder(f, 4096)
			for {
				u := &unstructured.Unstructured{}
				if err := documents.Decode(u); errors.Is(err, io.EOF) {
					break
				} else {
					Expect(err).NotTo(HaveOccurred())
				}
				u.SetNamespace(namespace)
				Expect(strict.Create(ctx, u, client.DryRunAll)).To(Succeed(), u.GetKind())
			}
		})
	}
})
