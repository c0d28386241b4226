package embedded

func (c *call) createIndex() *Error {
	var s settings
	if len(c.req.Body) > 0 {
		n, err := parseObject(c.req.Body)
		if err != nil {
			return err
		}
		if m := n.member("settings"); m != nil {
			s.read(m, "")
		}
	}
	name := c.vars.index
	if err := checkName(name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.indices[name]; x != nil {
		e := badRequest("resource_already_exists_exception", "index [%s/%s] already exists", name, x.uuid)
		e.index = x
		return e
	}
	x, err := c.newIndex(name, s)
	if err != nil {
		return err
	}
	c.indices[name] = x
	c.out = append(appendString(append(c.out, `{"acknowledged":true,"shards_acknowledged":true,"index":`...), name), '}')
	return nil
}

func (c *call) deleteIndex() *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indices[c.vars.index] == nil {
		return errIndexNotFound(c.vars.index)
	}
	delete(c.indices, c.vars.index)
	c.out = append(c.out, `{"acknowledged":true}`...)
	return nil
}

func (c *call) getIndex() *Error {
	x, err := c.single(c.vars.index)
	if err != nil {
		return err
	}
	dst := append(appendString(append(c.out, '{'), x.name), ':')
	dst = append(dst, `{"aliases":{},"mappings":{},"settings":`...)
	c.out = append(x.settings.appendNested(dst), '}', '}')
	return nil
}
