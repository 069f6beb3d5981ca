// Package crash kills the manager, as it is shipped, at each of its writes,
// and then restarts it.
//
// The manager runs against two proxies, one in front of the API server and one
// in front of a real S3 server. They count its writes. At the chosen write, the
// process is killed: either before the request is sent on, or after the server
// has carried it out and before the response is seen. After the restart, the
// manager must complete its work, with every bucket accounted for and no other
// bucket touched.
//
// The writes of a scenario are known only once it has run, but Ginkgo's tree of specs
// is fixed in advance. The tests are therefore plain subtests: each kill is a subtest
// that can be run alone by its name.
//
// The programs are bin/manager and bin/s3server, or those that MANAGER and S3SERVER name. CRASH=all
// runs every scenario; without it, only the scenarios of creating and deleting a bucket run.
package crash

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

// All scenarios share one API server and one store.
var (
	cfg  *rest.Config
	api  client.Client
	shop *rig.Store
	root *s3.Client
	// bystanders are the original contents of buckets that no object owns.
	bystanders map[string]*dump
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	logf.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return 0, err
	}
	if err := storagev1.AddToScheme(scheme); err != nil {
		return 0, err
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{rig.FromRoot("config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	if cfg, err = env.Start(); err != nil {
		return 0, fmt.Errorf("starting the control plane: %w", err)
	}
	defer func() { err = firstOf(err, env.Stop()) }()
	cfg.QPS = -1
	if api, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "crash-store-")
	if err != nil {
		return 0, err
	}
	defer func() { err = firstOf(err, os.RemoveAll(dir)) }()
	if shop, err = rig.StartStore(dir, nil); err != nil {
		return 0, err
	}
	defer shop.Stop()
	root = shop.Client()

	ctx := context.Background()
	if err := makeBystanders(ctx); err != nil {
		return 0, err
	}
	code = m.Run()
	return code, onlyBystandersLeft(ctx)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func makeBystanders(ctx context.Context) error {
	for name, tags := range map[string]map[string]string{
		"bystander-plain":  nil,
		"bystander-tagged": {"team": "others"},
		"bystander-owned":  {tagCluster: clusterID, tagUID: "00000000-0000-0000-0000-000000000000", tagOrigin: "created"},
	} {
		if err := makeForeign(ctx, name, tags); err != nil {
			return err
		}
	}
	var err error
	bystanders, err = dumpAll(ctx, func(name string) bool { return strings.HasPrefix(name, "bystander-") })
	return err
}

// onlyBystandersLeft checks that every scenario has removed what it created.
func onlyBystandersLeft(ctx context.Context) error {
	names, err := bucketNames(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if bystanders[name] == nil {
			return fmt.Errorf("bucket %s was left behind", name)
		}
	}
	return nil
}
