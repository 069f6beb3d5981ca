package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/metrics"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

// configure applies the declared configuration to a bucket that belongs to the object.
// configure reads only those parts of the configuration that are declared.
func (r *Buckets) configure(ctx context.Context, t *task) error {
	declared := s3store.Settings(&t.Spec)
	if err := r.takeOut(ctx, t, declared); err != nil {
		return err
	}
	var differing []s3store.Setting
	var unsupported []string
	for _, setting := range declared {
		same, err := t.site.store.Matches(ctx, t.BucketName(), setting)
		switch {
		case s3store.ReasonOf(err) == s3store.ReasonUnsupported:
			unsupported = append(unsupported, setting.Name)
		case err != nil:
			return named(setting.Name, err)
		case !same:
			differing = append(differing, setting)
		default:
			t.Status.Applied = withApplied(t.Status.Applied, setting)
		}
	}
	if len(differing) > 0 {
		refused, err := r.apply(ctx, t, differing)
		if err != nil {
			return err
		}
		unsupported = append(unsupported, refused...)
	}
	slices.Sort(unsupported)
	t.Status.Unsupported = unsupported
	if len(unsupported) > 0 {
		return &s3store.Error{
			Reason:  s3store.ReasonUnsupported,
			Message: "the store does not support what is declared in spec." + strings.Join(unsupported, ", spec.") + ": remove it, or use another store",
		}
	}
	return nil
}

// apply first records settings in the status, so that they can be removed when they are no longer
// declared, and then puts them into the bucket. apply returns the names of the settings that the
// store does not support.
func (r *Buckets) apply(ctx context.Context, t *task, differing []s3store.Setting) (unsupported []string, err error) {
	drifted := map[string]bool{}
	for _, setting := range differing {
		drifted[setting.Name] = wasApplied(t.Status.Applied, setting)
		t.Status.Applied = withApplied(t.Status.Applied, setting)
	}
	if err := r.save(ctx, t); err != nil {
		return nil, err
	}
	for _, setting := range differing {
		err := t.site.store.Apply(ctx, t.BucketName(), setting)
		if err == nil {
			// Some stores accept a setting that they do not support, and drop it.
			var kept bool
			if kept, err = t.site.store.Matches(ctx, t.BucketName(), setting); err == nil && !kept {
				err = &s3store.Error{Reason: s3store.ReasonUnsupported, Message: "the store accepted this setting but did not keep it"}
			}
		}
		switch {
		case s3store.ReasonOf(err) == s3store.ReasonUnsupported:
			// The setting stays in status.applied, because the store may have kept it, and
			// may return it in another form.
			unsupported = append(unsupported, setting.Name)
		case err != nil:
			return unsupported, named(setting.Name, err)
		case drifted[setting.Name]:
			metrics.DriftRepaired.WithLabelValues(setting.Name).Inc()
			r.event(t, true, "DriftRepaired", "Configure", "spec."+setting.Name+" differed in the store and was restored")
		default:
			r.event(t, true, "Configured", "Configure", "spec."+setting.Name+" was applied to the bucket")
		}
	}
	return unsupported, nil
}

// takeOut removes settings from the bucket that were applied and are no longer
// declared.
func (r *Buckets) takeOut(ctx context.Context, t *task, declared []s3store.Setting) error {
	for _, applied := range slices.Clone(t.Status.Applied) {
		stale, gone := leftover(applied, declared)
		if !stale {
			continue
		}
		err := t.site.store.Remove(ctx, t.BucketName(), gone)
		if err != nil && s3store.ReasonOf(err) != s3store.ReasonUnsupported {
			return named(applied.Name, err)
		}
		if len(gone.Keys) == len(applied.Keys) {
			t.Status.Applied = withoutApplied(t.Status.Applied, applied.Name)
		}
		r.event(t, true, "ConfigurationRemoved", "Configure", "spec."+applied.Name+" is no longer declared and was removed from the bucket")
	}
	return nil
}

// leftover returns the part of an applied setting that is no longer declared: the whole
// setting, or some of its keys.
func leftover(applied storagev1.AppliedConfiguration, declared []s3store.Setting) (stale bool, gone storagev1.AppliedConfiguration) {
	i := slices.IndexFunc(declared, func(s s3store.Setting) bool { return s.Name == applied.Name })
	if i < 0 {
		return true, applied
	}
	gone = applied
	gone.Keys = nil
	for _, key := range applied.Keys {
		if !slices.Contains(declared[i].Keys, key) {
			gone.Keys = append(gone.Keys, key)
		}
	}
	return len(gone.Keys) > 0, gone
}

func wasApplied(all []storagev1.AppliedConfiguration, s s3store.Setting) bool {
	return slices.ContainsFunc(all, func(a storagev1.AppliedConfiguration) bool { return a.Name == s.Name && a.Hash == s.Hash })
}

// withApplied returns the list with the setting added or replaced, ordered by name.
func withApplied(all []storagev1.AppliedConfiguration, s s3store.Setting) []storagev1.AppliedConfiguration {
	entry := storagev1.AppliedConfiguration{Name: s.Name, Hash: s.Hash, Keys: s.Keys}
	all = slices.Clone(all)
	if i := slices.IndexFunc(all, func(a storagev1.AppliedConfiguration) bool { return a.Name == s.Name }); i >= 0 {
		all[i] = entry
		return all
	}
	all = append(all, entry)
	slices.SortFunc(all, func(a, b storagev1.AppliedConfiguration) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func withoutApplied(all []storagev1.AppliedConfiguration, name string) []storagev1.AppliedConfiguration {
	return slices.DeleteFunc(slices.Clone(all), func(a storagev1.AppliedConfiguration) bool { return a.Name == name })
}

// named puts the name of the field in front of the message of a store's error.
func named(field string, err error) error {
	var failure *s3store.Error
	if !errors.As(err, &failure) {
		return fmt.Errorf("configuring %s: %w", field, err)
	}
	e := *failure
	e.Message = "spec." + field + ": " + e.Message
	return &e
}
