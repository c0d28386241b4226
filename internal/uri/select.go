package uri

// Select returns the parameters of the query whose names want takes, their bytes kept. The names are decoded as far as that is possible,
// and want must not keep them.
func Select(query []byte, want func(name []byte) bool) (selected []byte) {
	for len(query) > 0 {
		var p pair
		p, query = nextPair(query)
		if len(p.raw) == 0 || !want(p.name()) {
			continue
		}
		if len(selected) > 0 {
			selected = append(selected, '&')
		}
		selected = append(selected, p.raw...)
	}
	return selected
}

// name is the parameter's name, decoded; as it stands where that can't be.
func (p pair) name() []byte {
	for _, c := range p.key {
		if c != '%' && c != '+' {
			continue
		}
		if name, err := DecodeValue(nil, p.key); err == nil {
			return name
		}
		break
	}
	return p.key
}
