package merge

import (
	"bytes"
	"go/version"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// modFile merges the requirements of two go.mod files. It never lowers a version that the
// person has raised, and it removes nothing, because the code of the person may need it. It
// reports false if the difference has other parts, or if a file does not parse.
func modFile(base, ours, theirs []byte) ([]byte, bool) {
	b, t, o := parseMod(base), parseMod(theirs), parseMod(ours)
	if b == nil || t == nil || o == nil || !bytes.Equal(remainder(base), remainder(theirs)) {
		return nil, false
	}
	if t.Go != nil && (o.Go == nil || version.Compare("go"+t.Go.Version, "go"+o.Go.Version) > 0) {
		if err := o.AddGoStmt(t.Go.Version); err != nil {
			return nil, false
		}
	}
	required := slices.Clone(o.Require)
	for _, r := range t.Require {
		was, own := requirement(b, r.Mod.Path), requirement(o, r.Mod.Path)
		switch {
		case was != nil && (own == nil || was.Mod == r.Mod): // removed by the person, or no difference
		case own == nil:
			required = append(required, &modfile.Require{Mod: r.Mod, Indirect: r.Indirect})
		case was != nil && was.Mod == own.Mod, semver.Compare(r.Mod.Version, own.Mod.Version) > 0:
			i := slices.Index(required, own)
			required[i] = &modfile.Require{Mod: r.Mod, Indirect: own.Indirect}
		}
	}
	o.SetRequireSeparateIndirect(required)
	o.Cleanup()
	merged, err := o.Format()
	return merged, err == nil
}

func parseMod(data []byte) *modfile.File {
	f, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return nil
	}
	return f
}

func requirement(f *modfile.File, path string) *modfile.Require {
	i := slices.IndexFunc(f.Require, func(r *modfile.Require) bool { return r.Mod.Path == path })
	if i < 0 {
		return nil
	}
	return f.Require[i]
}

// remainder returns the parts of a go.mod file that modFile does not merge.
func remainder(data []byte) []byte {
	f := parseMod(data)
	f.SetRequire(nil)
	f.DropGoStmt()
	f.Cleanup()
	return modfile.Format(f.Syntax)
}

// sumFile adds the checksums that theirs has and base lacks, in the order of the go command.
// Other checksums stay, because versions that the person has chosen may need them.
func sumFile(base, ours, theirs []byte) []byte {
	have := split(ours)
	all := map[module.Version][]string{}
	for _, line := range have {
		all[checksum(line)] = append(all[checksum(line)], line)
	}
	old := split(base)
	for _, line := range split(theirs) {
		if key := checksum(line); all[key] == nil && !slices.Contains(old, line) {
			all[key] = []string{line}
		}
	}
	keys := make([]module.Version, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	if len(keys) == len(have) {
		return ours
	}
	module.Sort(keys)
	var merged []string
	for _, key := range keys {
		merged = append(merged, whole(all[key])...)
	}
	return []byte(strings.Join(merged, ""))
}

// checksum returns the module and the version in a line of go.sum.
func checksum(line string) module.Version {
	if f := strings.Fields(line); len(f) == 3 {
		return module.Version{Path: f[0], Version: f[1]}
	}
	return module.Version{Path: line}
}
