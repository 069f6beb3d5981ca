/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package controller

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"koboshi.example/project/pkg/generated/clientset/versioned"
)

var (
	cfg        *rest.Config
	kubeClient kubernetes.Interface
	client     versioned.Interface
	testEnv    *envtest.Environment
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Controller Suite")
}

var _ = BeforeSuite(func() {
	klog.LogToStderr(false)
	klog.SetOutput(GinkgoWriter)

	By("starting the control plane")
	testEnv = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		BinaryAssetsDirectory: binaryAssetsDirectory(),
	}
	var err error
	cfg, err = testEnv.Start()
	Expect(err).NotTo(HaveOccurred())

	kubeClient, err = kubernetes.NewForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
	client, err = versioned.NewForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	By("stopping the control plane")
	Expect(testEnv.Stop()).To(Succeed())
})

// binaryAssetsDirectory returns the folder that "make setup-envtest" has filled, so that the suite
// also runs in an editor. If it is empty, envtest uses KUBEBUILDER_ASSETS.
func binaryAssetsDirectory() string {
	dirs, err := filepath.Glob(filepath.Join("..", "..", "bin", "k8s", "*"))
	if err != nil || len(dirs) == 0 || os.Getenv("KUBEBUILDER_ASSETS") != "" {
		return ""
	}
	return dirs[len(dirs)-1]
}
