package write

import "optimist/internal/outbound"

// share reports whether m may go in the same write as first. Both must be shareable, and have the same rule, credentials, lock tokens,
// route, parameters and media type. Both are patches, or neither is. The lane is locked during the call.
func (s *Service) share(first, m *change) bool {
	return s.mayShare(first) && m.shareable && first.Rule == m.Rule && (first.patch == nil) == (m.patch == nil) &&
		first.policy().MaxAttempts == m.policy().MaxAttempts &&
		first.req.Tokens.Equal(m.req.Tokens) && first.Credentials() == m.Credentials() && first.req.Route == m.req.Route &&
		outbound.Alike(&first.out, &m.out)
}

// mayShare reports whether the change may share a write now. That its client sees documents whole is often found out while changes wait.
func (s *Service) mayShare(c *change) bool {
	return c.shareable && (c.patch != nil || s.catalog.KnownWhole(c.Asker(), c.Name))
}
