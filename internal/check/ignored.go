package check

import (
	"fmt"
	"slices"
)

// matched remembers the lines of a scenario's ignore list that matched a field or an object.
func (o *outcome) matched(scenario string, lines []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, line := range lines {
		if o.ignored[scenario] == nil {
			o.ignored[scenario] = map[string]bool{}
		}
		o.ignored[scenario][line] = true
	}
}

// idleIgnores returns a note for each line of an ignore list that matched nothing in any run.
// In a shard, it returns nothing, because the line may match in another shard. In a resumed
// check, it also returns nothing, because the journal does not record which lines matched. It
// also skips scenarios whose runs without a fault could not be compared.
func (o *outcome) idleIgnores() (notes []string) {
	if o.Shards > 1 || o.Known != nil {
		return nil
	}
	idle := map[string]bool{} // the lines of the project's settings
	for _, line := range o.Opinions.Ignore {
		idle[line] = true
	}
	for _, sc := range o.Scenarios {
		l := o.lessons[sc.Name]
		for _, line := range sc.Ignore {
			switch unknown := l == nil || l.Reference == nil; {
			case unknown || o.ignored[sc.Name][line]:
				delete(idle, line)
			case !slices.Contains(o.Opinions.Ignore, line):
				notes = append(notes, fmt.Sprintf("scenario %s: ignore: %q matched no field and no object in any run; correct the line or remove it", sc.Name, line))
			}
		}
	}
	for _, line := range o.Opinions.Ignore {
		if idle[line] {
			notes = append(notes, fmt.Sprintf("%s: check.ignore: %q matched no field and no object in any run; correct the line or remove it", o.OpinionsFile, line))
		}
	}
	return notes
}
