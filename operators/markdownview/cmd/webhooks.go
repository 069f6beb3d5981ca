package main

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/controller"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/images"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/overrides"
	webhookv1 "github.com/koboshi-dev/koboshi/operators/markdownview/internal/webhook/v1"
)

// addWebhooks adds the webhooks, unless they are turned off. The controller enforces the
// same limits as the webhooks, because a webhook can be bypassed.
func addWebhooks(mgr ctrl.Manager, o options, c *controller.Options) error {
	allowed, err := images.Parse(split(o.allowedImages)...)
	if err != nil {
		return fmt.Errorf("--allowed-viewer-images: %w", err)
	}
	c.AllowedImage = func(image string) bool { return image == o.viewerImage || allowed.Allows(image) }
	if c.Overrides, err = overrides.Parse(split(o.authorOverrides)...); err != nil {
		return fmt.Errorf("--author-overrides: %w", err)
	}
	if !o.webhooks {
		return nil
	}
	return webhookv1.SetupWithManager(mgr, webhookv1.Options{DefaultImage: o.viewerImage, Images: allowed, Overrides: c.Overrides})
}
