package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// UnmarshalText reads an address (10.1.2.3) or a network (10.0.0.0/8).
func (p *Prefix) UnmarshalText(b []byte) error {
	text := string(b)
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("%q is no network: write it as in 10.0.0.0/8 or fd00::/8", text)
		}
		p.Prefix = prefix.Masked()
		return nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return fmt.Errorf("%q is no address: write it as in 10.1.2.3, or a network as in 10.0.0.0/8", text)
	}
	addr = addr.Unmap()
	p.Prefix = netip.PrefixFrom(addr, addr.BitLen())
	return nil
}

var (
	errPointerSlash  = errors.New("a path is a JSON Pointer and begins with a slash, as in /stock or /lines/*/price")
	errPointerRoot   = errors.New("the empty path is the whole document: that is merge.default")
	errPointerEscape = errors.New("in a JSON Pointer a ~ is written ~0 and a / within a name ~1")
)

// checkPointer says what is wrong with a JSON Pointer (RFC 6901) as used in merge.paths.
func checkPointer(p string) error {
	if p == "" {
		return errPointerRoot
	}
	if p[0] != '/' {
		return errPointerSlash
	}
	for i := 0; i < len(p); i++ {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return errPointerEscape
		}
	}
	return nil
}
