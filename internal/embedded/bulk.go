package embedded

import (
	"bytes"
	"fmt"

	"optimist/rewrite/tree"
)

// bulkItem is one action of a bulk request.
type bulkItem struct {
	verb      string // as the answer names the action
	index     string
	needAlias bool
	pipeline  string
	noName    bool   // it has an id, which is empty
	u         update // the action; if it is no update, only u.write counts
}

func (c *call) bulk() *Error {
	if len(c.req.Body) == 0 {
		return errBodyRequired()
	}
	start := c.clock()
	refreshed := c.refresh()
	items, err := c.bulkItems()
	if err != nil {
		return err
	}
	failed := false
	out := []byte(`,"items":[`)
	for i := range items {
		var bad bool
		out, bad = c.runItem(appendComma(out), &items[i], refreshed)
		failed = failed || bad
	}
	c.out = fmt.Appendf(c.out, `{"errors":%t,"took":%d%s]}`, failed, c.clock().Sub(start).Milliseconds(), out)
	return nil
}

// bulkItems reads and checks all actions before any is carried out: one malformed action refuses the whole request.
func (c *call) bulkItems() ([]bulkItem, *Error) {
	defaults := bulkItem{index: c.vars.index, pipeline: c.params.get("pipeline")}
	const alias = "require_alias" // an empty one counts for requests of one document only
	defaults.needAlias = c.params.get(alias) != "" && c.flag(alias, false)
	if c.bad != nil {
		return nil, c.bad
	}
	var items []bulkItem
	var v validation
	var item *bulkItem // the action whose source is the next line
	line := 0
	for text := range bytes.Lines(c.req.Body) {
		line++
		text, ended := bytes.CutSuffix(text, []byte{'\n'})
		if !ended {
			return nil, illegalArgument(`The bulk request must be terminated by a newline [\n]`)
		}
		text = bytes.TrimSuffix(text, []byte{'\r'})
		if item != nil {
			if err := item.content(text); err != nil {
				return nil, err
			}
			items, item = append(items, *item), nil
			continue
		}
		if len(bytes.Trim(text, " \t")) == 0 {
			continue
		}
		next := defaults
		next.u = newUpdate("")
		next.u.routing = c.params.get("routing")
		if err := next.action(text, line); err != nil {
			return nil, err
		}
		if next.verb == "delete" {
			items = append(items, next)
		} else {
			item = &next // if the body ends before its source, it isn't an action
		}
	}
	if len(items) == 0 {
		v.add("no requests added")
	}
	for i := range items {
		items[i].validate(&v)
	}
	return items, v.err()
}

// actions are those of a bulk request.
var actions = map[string]action{"create": actCreate, "delete": actDelete, "index": actIndex, "update": actUpdate}

// action reads an action's own line.
func (it *bulkItem) action(text []byte, line int) *Error {
	bad := func(format string, args ...any) *Error {
		return illegalArgument("Malformed action/metadata line [%d], "+format, append([]any{line}, args...)...)
	}
	n, rest, err := parseJSON(text)
	switch {
	case err != nil:
		return badBody(err)
	case n.kind != tree.Object:
		return bad("expected START_OBJECT but found [%s]", tokenName(n.raw))
	case len(n.kids) == 0:
		return bad("expected FIELD_NAME but found [END_OBJECT]")
	}
	head := n.kids[0]
	known := false
	it.verb = head.name
	if it.u.act, known = actions[it.verb]; !known {
		return bad("expected field [create], [delete], [index] or [update] but found [%s]", head.name)
	}
	if head.kind != tree.Object {
		return bad("expected START_OBJECT or END_OBJECT but found [%s]", tokenName(head.raw))
	}
	if len(n.kids) > 1 {
		return bad("expected END_OBJECT but found [FIELD_NAME]")
	}
	if len(rest) > 0 {
		return bad("unexpected data after the closing brace")
	}
	for _, kid := range head.kids {
		if err := it.metadata(kid, line); err != nil {
			return err
		}
	}
	return nil
}

func (it *bulkItem) metadata(kid *node, line int) (err *Error) {
	number := func() (n int64) {
		n, err = parseNumber(kid.name, kid.text(), 64)
		return n
	}
	object := kid.name == "_source" || kid.name == "dynamic_templates"
	switch {
	case kid.kind == tree.Null:
		return nil // null counts as missing
	case kid.kind == tree.Array, kid.kind == tree.Object && !object:
		return illegalArgument("Malformed action/metadata line [%d], expected a simple value for field [%s] but found [%s]",
			line, kid.name, tokenName(kid.raw))
	}
	switch kid.name {
	case "_index":
		it.index = kid.text()
	case "_id":
		it.u.id = kid.text()
		it.noName = it.u.id == ""
	case "routing":
		it.u.routing = kid.text()
	case "op_type":
		if it.verb == "index" && kid.text() == "create" {
			it.u.act, it.verb = actCreate, "create" // the answer says create, too
		}
	case "version":
		it.u.version = number()
	case "version_type":
		it.u.versionType, err = parseVersionType(kid.text())
	case "if_seq_no":
		it.u.ifSeqNo = number()
	case "if_primary_term":
		it.u.ifTerm = number()
	case "retry_on_conflict":
		it.u.retries = number()
	case "pipeline":
		it.pipeline = kid.text()
	case "require_alias":
		it.needAlias = kid.isTrue()
	case "_source":
		it.u.answer, it.u.filter = true, filterOf(kid)
	case "dynamic_templates", "require_data_stream", "list_executed_pipelines":
	default:
		return illegalArgument("Action/metadata line [%d] contains an unknown parameter [%s]", line, kid.name)
	}
	return err
}

// content takes an action's source line. It is copied: a stored document must not keep the whole bulk in memory.
func (it *bulkItem) content(text []byte) *Error {
	text = append([]byte(nil), text...)
	if it.verb != "update" {
		it.u.source = text
		return nil
	}
	n, _, err := parseJSON(text)
	if err != nil {
		return badBody(err)
	}
	return it.u.read(n, text)
}

func (it *bulkItem) validate(v *validation) {
	if it.index == "" {
		v.add("index is missing")
	}
	if it.u.id == "" && (it.verb == "delete" || it.verb == "update") {
		v.add("id is missing")
		return
	}
	var err *Error
	if it.verb == "update" {
		err = it.u.validate()
	} else {
		w := it.u.write
		if it.noName {
			w.id = "-" // an empty one is refused later, and alone
		}
		err = w.validate()
	}
	if err != nil {
		v.addAll(err)
	}
}

// runItem carries out one action and appends its answer.
func (c *call) runItem(dst []byte, it *bulkItem, refreshed bool) (out []byte, failed bool) {
	if it.u.id == "" && !it.noName {
		c.nameNew(&it.u.write)
	}
	x, o, result, err := c.perform(it)
	dst = append(appendString(append(dst, '{'), it.verb), ':', '{')
	if err != nil {
		name := it.index
		if x != nil {
			name = x.name
		}
		dst = fmt.Appendf(appendPlace(dst, name, it.u.id), `,"status":%d,"error":`, err.Status)
		return append(err.appendItem(dst), '}', '}'), true
	}
	status := 200
	switch result {
	case "created":
		status = 201
	case "not_found":
		status = 404
	}
	dst = appendResult(dst, x, o.rev, result, refreshed && result != "noop")
	if it.verb == "update" {
		dst = it.u.appendAnswer(dst, o.rev)
	}
	return fmt.Appendf(dst, `,"status":%d}}`, status), false
}

func (c *call) perform(it *bulkItem) (x *index, o outcome, result string, err *Error) {
	if it.verb == "update" && it.u.upsert == nil {
		it.pipeline = "" // the engine runs the pipeline of an update on its upsert only
	}
	if err = noPipeline(it.pipeline); err != nil {
		return nil, o, "", err
	}
	w := &it.u.write
	if it.verb == "delete" {
		x, err = c.indexOfDelete(it.index, w)
	} else {
		x, err = c.indexOfWrite(it.index, it.needAlias, w)
	}
	if err == nil && it.noName {
		err = illegalArgument("if _id is specified it must not be empty")
	}
	if err != nil {
		return x, o, "", err
	}
	switch it.verb {
	case "update":
		o, result, err = c.update(x, &it.u)
		return x, o, result, err
	case "delete":
		o, err = x.shard.apply(x, w)
	default:
		o, err = c.store(x, w)
	}
	return x, o, resultOf(w, o), err
}
