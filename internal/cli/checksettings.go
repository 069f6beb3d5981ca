package cli

import (
	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/settings"
)

// configure adds the settings of the project to the options. Flags take precedence.
func (f *checkFlags) configure(o *check.Options) error {
	file, err := f.settings()
	if err != nil {
		return err
	}
	o.Opinions, o.OpinionsFile = file.Check, file.Path
	if f.profile != "" {
		o.Opinions.Profile = ""
	}
	if profile := o.Opinions.Profile; profile != "" {
		// A replay must use the same profile, even if the file has changed by then.
		f.profile, o.Profile, f.values["profile"] = profile, profile, []string{profile}
	}
	if err := f.usePrograms(o, o.Opinions.Run); err != nil {
		return err
	}
	if len(o.Faults) > 0 {
		o.Opinions.Faults.Only, o.Opinions.Faults.Skip = nil, nil
	} else {
		o.Faults = o.Opinions.Kinds()
	}
	return nil
}

func (f *checkFlags) settings() (*settings.File, error) {
	if f.config != "" {
		return settings.Load(f.config)
	}
	return settings.Find(f.project.Dir)
}
