package wire

// Without returns the fields but those of that name, compared without case. The given slice stays as it is.
func Without(fields []Field, name string) []Field {
	for i := range fields {
		if EqualFold(fields[i].Name, name) {
			kept := fields[:i:i]
			for _, f := range fields[i+1:] {
				if !EqualFold(f.Name, name) {
					kept = append(kept, f)
				}
			}
			return kept
		}
	}
	return fields
}
