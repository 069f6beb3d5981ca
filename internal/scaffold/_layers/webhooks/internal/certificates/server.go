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

// Package certificates serves webhooks with a self-signed certificate, which the manager makes and
// renews itself, so that the cluster needs no cert-manager.
//
//	Secret ◀──create, renew── Server ──serve──▶ API server
//	                            └──write the certificate into──▶ webhook configurations, CRDs
//
// Several managers can run at the same time: one of them writes the Secret, and all serve what is in
// it.
package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const (
	// interval is the time between two looks at the Secret and the configurations.
	interval = time.Minute
	// retry is the time after a failure, such as a configuration that does not exist yet. It doubles
	// with each further failure, up to interval.
	retry = time.Second
)

// server is a webhook server that obtains its certificate before it starts. Being a webhook server,
// it starts before the caches of the manager, which may need a conversion webhook.
type server struct {
	webhook.Server
	options Options
	client  client.Client
	now     func() time.Time

	// serving is the certificate of new connections.
	serving atomic.Pointer[tls.Certificate]
	// trusted is the certificate that all configurations had at the end of the last look.
	trusted []byte
	// said is the last problem in the log.
	said string
}

// NewServer returns a webhook server. Without a Secret in the options, it serves the certificate that
// w names.
func NewServer(w webhook.Options, o Options) webhook.Server {
	if !o.Enabled() {
		return webhook.NewServer(w)
	}
	s := &server{options: o, now: time.Now}
	w.TLSOpts = append(slices.Clone(w.TLSOpts), func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.serving.Load(), nil }
	})
	s.Server = webhook.NewServer(w)
	return s
}

// Start serves the webhooks as soon as there is a certificate, until the context ends.
func (s *server) Start(ctx context.Context) error {
	if err := s.options.parse(); err != nil {
		return err
	}
	if err := s.connect(); err != nil {
		return err
	}
	served := make(chan struct{})
	go s.keep(ctx, served)
	select {
	case <-served:
		return s.Server.Start(ctx)
	case <-ctx.Done():
		return nil
	}
}

// connect makes a client without a cache, because caches start later.
func (s *server) connect() error {
	if s.client != nil {
		return nil
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return err
	}
	s.client, err = client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("making the client of the certificate: %w", err)
	}
	return nil
}

// keep keeps the certificate up to date until the context ends. It closes served when there is one.
func (s *server) keep(ctx context.Context, served chan<- struct{}) {
	waiting, pause := true, retry
	for {
		err := s.update(ctx)
		s.say(err)
		if waiting && s.serving.Load() != nil {
			waiting = false
			close(served)
		}
		next := interval
		if err != nil {
			next, pause = pause, min(2*pause, interval)
		} else {
			pause = retry
		}
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// say logs a problem, unless it is the same as before.
func (s *server) say(err error) {
	text := fmt.Sprint(err)
	if err != nil && text != s.said {
		ctrl.Log.WithName("certificates").Info("The certificate of the webhooks is not everywhere yet", "reason", text)
	}
	s.said = text
}

// update looks at the Secret and the configurations once.
func (s *server) update(ctx context.Context) error {
	c, err := s.current(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, target := range s.options.targets {
		problems = append(problems, s.trust(ctx, target, c.authorities))
	}
	err = errors.Join(problems...)
	// The API server needs a moment to notice a new certificate. So a certificate that replaces another
	// one is served only after it was everywhere at the end of the last look.
	old := s.serving.Load()
	if old == nil || string(s.trusted) == string(c.pair.Certificate[0]) || s.now().After(old.Leaf.NotAfter) {
		s.serving.Store(&c.pair)
	}
	if err == nil {
		s.trusted = c.pair.Certificate[0]
	}
	return err
}

// current returns the certificate in the Secret. If there is none, or it ends soon, current replaces it.
// When two managers do so at the same time, one of them gets a conflict, and reads what the other wrote.
func (s *server) current(ctx context.Context) (*certificate, error) {
	var secret corev1.Secret
	if err := s.client.Get(ctx, s.options.key, &secret); err != nil {
		return nil, fmt.Errorf("reading the Secret %s: %w", s.options.key, err)
	}
	c, err := parse(secret.Data)
	if err == nil && c.valid(s.options.host(), s.now()) {
		return c, nil
	}
	c, err = issue(s.options.host(), s.now(), s.previous(c))
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	secret.Data = c.data()
	if err := s.client.Update(ctx, &secret); err != nil {
		return nil, fmt.Errorf("writing the Secret %s: %w", s.options.key, err)
	}
	ctrl.Log.WithName("certificates").Info("Made a certificate for the webhooks", "until", c.pair.Leaf.NotAfter)
	return c, nil
}

// previous returns the certificate that clients may still get when there is a new one, or nil.
func (s *server) previous(stored *certificate) []byte {
	if serving := s.serving.Load(); serving != nil {
		return serving.Certificate[0]
	}
	if stored != nil {
		return stored.pair.Certificate[0]
	}
	return nil
}

// trust writes authorities into a configuration, which makes the API server trust them.
func (s *server) trust(ctx context.Context, t target, authorities []byte) error {
	object := t.empty()
	err := s.client.Get(ctx, client.ObjectKey{Name: t.name}, object)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s does not exist", t)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", t, err)
	}
	before := object.DeepCopy()
	if !setAuthorities(object.Object, s.options.key.Namespace, s.options.service, authorities) {
		return nil
	}
	// The patch contains the version, because it replaces the whole list of webhooks.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("writing the certificate into %s: %w", t, err)
	}
	return nil
}
