package config

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ruleFile is what a file of rule_files holds.
type ruleFile struct {
	Rules []Rule `json:"rules"`
}

// whole reads the files that rule_files names. It refuses a file without any key: somebody is just writing it, or has emptied it by
// mistake.
func (c *Config) whole() Problems {
	problems := c.readRules()
	if c.blank {
		p := newProblem(Error, "", "nothing stands in this file: it is empty, or half written; for the defaults alone write {}")
		problems = append(problems, c.placed(p, Pos{Line: 1, Column: 1}, 0))
	}
	return problems
}

// readRules reads the files that rule_files names and puts their rules in their place.
func (c *Config) readRules() Problems {
	files, problems := c.ruleFiles()
	var further []Rule
	for _, name := range files {
		rules, found := c.readRuleFile(name)
		further, problems = append(further, rules...), append(problems, found...)
	}
	// Rules at the end of the file that name no index and no client are for all requests that are left. So they stay behind the rules of all
	// files.
	last := len(c.Rules)
	for last > 0 && c.Rules[last-1].Match.everywhere() {
		last--
	}
	c.Rules = slices.Insert(c.Rules, last, further...)
	return problems
}

// everywhere reports whether neither an index nor a client is named.
func (m *Match) everywhere() bool {
	return len(m.Index) == 0 && len(m.Headers) == 0 && len(m.Users) == 0
}

// ruleFiles are the files that the patterns of rule_files stand for, sorted by name.
func (c *Config) ruleFiles() (files []string, problems Problems) {
	for i, pattern := range c.RuleFiles {
		key := "rule_files[" + strconv.Itoa(i) + "]"
		found, err := matching(c.file, pattern)
		switch {
		case err != nil:
			problems = append(problems, c.Fail(key, "%q is not a pattern of file names", pattern))
		case len(found) == 0:
			problems = append(problems, c.Fail(key, "there is no such file: %s", filepath.Join(filepath.Dir(c.file), pattern)))
		case slices.Contains(found, filepath.Clean(c.file)):
			problems = append(problems, c.Fail(key, "it fits this file itself; put the files with rules into a folder of their own"))
		default:
			files = append(files, found...)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), problems
}

// matching are the files that a pattern stands for, relative to the folder of the file that names it. A star takes no name with a leading
// dot, as in shells, because editors keep their own files under such names. It takes no file of tests either, because tests stand beside
// the rules.
func matching(file, pattern string) ([]string, error) {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(filepath.Dir(file), pattern)
	}
	found, err := filepath.Glob(pattern)
	if err != nil || !strings.ContainsAny(pattern, `*?[`) {
		return found, err
	}
	hidden := strings.HasPrefix(filepath.Base(pattern), ".")
	return slices.DeleteFunc(found, func(name string) bool {
		return isTestFile(name) || !hidden && strings.HasPrefix(filepath.Base(name), ".")
	}), nil
}

// isTestFile reports whether a file is one of tests, by its name: *.test.yaml.
func isTestFile(name string) bool {
	return strings.HasSuffix(name, ".test.yaml") || strings.HasSuffix(name, ".test.yml")
}

func (c *Config) readRuleFile(name string) ([]Rule, Problems) {
	data, err := os.ReadFile(name)
	d := newDecoder(c, name, data)
	if err != nil {
		d.failAt(Pos{}, "", "it can't be read: %s", err)
		return nil, d.problems
	}
	var f ruleFile
	root := fileKey(d.file)
	d.document(data, &f, root)
	for i := range f.Rules {
		r := &f.Rules[i]
		r.key = root + ".rules[" + strconv.Itoa(i) + "]"
		if r.Match.Index == nil && len(d.problems) == 0 {
			d.problems = append(d.problems, c.Fail(r.key,
				"a rule in a file of rule_files names its indices (match.index); one for all the rest stands at the end of %s",
				filepath.Base(c.file)))
		}
	}
	if len(f.Rules) == 0 && len(d.problems) == 0 {
		d.failAt(Pos{Line: 1, Column: 1}, "", "there are no rules in it; a file of rule_files holds `rules:`")
	}
	return f.Rules, d.problems
}

// Files returns the files of a configuration that exist now, and the folders in which further ones may appear. A watcher of files needs
// both. Files ignores mistakes in the files: Load reports them.
func Files(name string) (files, folders []string) {
	files, folders = []string{name}, []string{filepath.Dir(name)}
	data, err := os.ReadFile(name)
	if err != nil {
		return files, append(folders, beyond(name)...)
	}
	c := &Config{file: name, at: map[string]spot{}}
	newDecoder(c, name, data).document(data, c, "")
	for _, pattern := range c.RuleFiles {
		found, err := matching(name, pattern)
		if err != nil {
			continue
		}
		files = append(files, found...)
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(name), pattern)
		}
		folders = append(folders, parents(filepath.Dir(pattern))...)
	}
	for _, file := range files {
		folders = append(folders, beyond(file)...)
	}
	slices.Sort(files[1:])
	slices.Sort(folders)
	return slices.Compact(files), slices.Compact(folders)
}

// maxLinks is how many links may follow one another. Systems follow 40 at most.
const maxLinks = 40

// beyond are further folders in which a change may put another file behind a name: the folders of the symbolic links that lead to the file,
// and the file's own folder behind these links. Without links there are none.
func beyond(name string) (folders []string) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil
	}
	root := filepath.VolumeName(name) + string(filepath.Separator)
	at, links := root, 0
	for rest := split(name); len(rest) > 0; {
		next := filepath.Join(at, rest[0]) // at has no links, so ".." is its parent
		rest = rest[1:]
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return nil
		}
		folders = append(folders, at)
		if filepath.IsAbs(target) {
			at = root
		}
		rest = append(split(target), rest...)
	}
	if links > 0 {
		folders = append(folders, filepath.Dir(at))
	}
	return folders
}

// split is the parts of a path.
func split(path string) []string {
	return strings.FieldsFunc(strings.TrimPrefix(path, filepath.VolumeName(path)), func(r rune) bool {
		return r == '/' || r == filepath.Separator
	})
}

// parents are the folders that a pattern stands for. If the pattern has stars, or there is no such folder yet, the nearest folders above
// that exist are among them, because such folders may appear there.
func parents(pattern string) []string {
	found, _ := filepath.Glob(pattern) // a bad pattern is a mistake that Load reports
	for len(found) == 0 || strings.ContainsAny(pattern, "*?[") {
		up := filepath.Dir(pattern)
		if up == pattern {
			break
		}
		pattern = up
		there, _ := filepath.Glob(pattern)
		found = append(found, there...)
	}
	return found
}
