package wire

import "slices"

// Without returns the fields but those of these names, compared without case. The given slice stays as it is.
func Without(fields []Field, names ...string) []Field {
	named := func(f Field) bool {
		return slices.ContainsFunc(names, func(name string) bool { return EqualFold(f.Name, name) })
	}
	if !slices.ContainsFunc(fields, named) {
		return fields
	}
	return slices.DeleteFunc(slices.Clone(fields), named)
}
