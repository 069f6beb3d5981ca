package lab

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/check/home"
	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/loopback"
)

// slots is the number of instances of a controller that may run at the same time.
const slots = loopback.Slots

// next is the slot of the instances of Config.Next.
const next = 1

// spec prepares the files of the instance in a slot, and returns its process. The process
// finds the cluster with the kubeconfig. The arguments and the environment are added to those
// of the subject.
func (l *Lab) spec(slot int, kubeconfig []byte, args, env []string) (process.Spec, error) {
	if err := home.Make(l.home(slot), kubeconfig); err != nil {
		return process.Spec{}, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return process.Spec{}, fmt.Errorf("reading the proxy's kubeconfig: %w", err)
	}
	if err := subject.WriteAccount(l.files(slot), l.subject(slot).Files, config.BearerToken, config.CAData); err != nil {
		return process.Spec{}, err
	}
	inCluster, err := l.inCluster(slot, config)
	if err != nil {
		return process.Spec{}, err
	}
	path := home.Kubeconfig(l.home(slot))
	s := l.subject(slot).Expand(map[string]string{
		subject.Certs: l.certs, subject.Kubeconfig: path,
		subject.Root: l.files(slot), subject.Address: l.address(slot).String(), subject.PodUID: cmp.Or(l.podUIDs[slot], subject.NoPodUID),
	})
	return process.Spec{
		Command: slices.Concat(s.Command, s.Webhook.Args, args), Dir: s.Dir,
		Env:  slices.Concat(home.Environment(l.home(slot)), inCluster, hostname(&s), s.Env, env, []string{"KUBECONFIG=" + path}),
		View: l.views[slot], Address: l.address(slot),
	}, nil
}
