package config

import (
	"path/filepath"
	"reflect"
	"strings"
)

// NamedFile is a key that names a file, with its value. The file has to be there when optimist starts. Such keys end in _file.
type NamedFile struct {
	Key  string
	Name *string // in the configuration; empty: the key isn't set
}

// Files has all such keys, in the order of the configuration's structs. Keys of files that optimist makes itself aren't among them.
func (c *Config) Files() []NamedFile { return filesOf(nil, reflect.ValueOf(c).Elem(), "") }

func filesOf(found []NamedFile, v reflect.Value, path string) []NamedFile {
	for i := range v.NumField() {
		f, is := v.Field(i), v.Type().Field(i)
		if !is.IsExported() {
			continue
		}
		key := join(path, keyOf(is))
		if f.Kind() == reflect.Struct {
			found = filesOf(found, f, key)
		} else if name, ok := f.Addr().Interface().(*string); ok && strings.HasSuffix(key, "_file") {
			found = append(found, NamedFile{key, name})
		}
	}
	return found
}

// resolveFiles makes file names relative to the configuration's folder, so that it doesn't matter from where optimist is
// started.
func (c *Config) resolveFiles() {
	names := []*string{&c.Sessions.File, &c.DeadLetters.Folder}
	for _, f := range c.Files() {
		if c.flags[f.Key] == "" { // a flag's name is relative to where optimist is started
			names = append(names, f.Name)
		}
	}
	for _, name := range names {
		if *name != "" && !filepath.IsAbs(*name) && c.file != "" {
			*name = filepath.Join(filepath.Dir(c.file), *name)
		}
	}
}
