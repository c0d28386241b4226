package embedded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tagline stands in the answer to GET / in place of the engine's own, so that nobody takes this for a database.
const tagline = "You know, for trying: in memory only, all data is lost when optimist ends"

const clusterName = "optimist-embedded"

func (c *call) root() *Error {
	dst := appendString(append(c.out, `{"name":`...), c.name)
	dst = appendString(append(dst, `,"cluster_name":"`+clusterName+`","cluster_uuid":`...), c.uuid)
	dst = append(dst, `,"version":{"distribution":"optimist-embedded","number":"`+Version+`","build_flavor":"default","build_type":"in-memory"`...)
	dst = append(dst, `,"build_hash":"unknown","build_date":"`+c.born.UTC().Format("2006-01-02T15:04:05.000Z")+`","build_snapshot":false,"lucene_version":"none"`...)
	dst = append(dst, `,"minimum_wire_compatibility_version":"8.19.0","minimum_index_compatibility_version":"8.0.0"},"tagline":`...)
	c.out = append(appendString(dst, tagline), '}')
	return nil
}

// health answers _cluster/health. An index with replicas is yellow, because there never is a second node.
func (c *call) health() *Error {
	found, err := c.resolve(c.vars.index, expand{empty: true, lenient: true, hidden: true})
	if err != nil {
		return err
	}
	status, unassigned := "green", 0
	for _, x := range found {
		unassigned += x.replicas()
	}
	if unassigned > 0 {
		status = "yellow"
	}
	n := len(found)
	percent := 100.0
	if n > 0 {
		percent = 100 * float64(n) / float64(n+unassigned)
	}
	missing := c.vars.index != "" && n == 0 && !strings.Contains(c.vars.index, "*")
	if missing {
		status = "red"
	}
	timedOut := missing || c.params.get("wait_for_status") == "green" && status != "green"
	if timedOut {
		c.resp.Status = 408
	}
	c.out = fmt.Appendf(c.out, `{"cluster_name":"`+clusterName+`","status":"%s","timed_out":%t,"number_of_nodes":1,"number_of_data_nodes":1,`+
		`"active_primary_shards":%d,"active_shards":%d,"relocating_shards":0,"initializing_shards":0,"unassigned_shards":%d,`+
		`"unassigned_primary_shards":0,"delayed_unassigned_shards":0,"number_of_pending_tasks":0,"number_of_in_flight_fetch":0,`+
		`"task_max_waiting_in_queue_millis":0,"active_shards_percent_as_number":%s}`,
		status, timedOut, n, n, unassigned, appendDouble(nil, strconv.AppendFloat(nil, percent, 'f', -1, 64)))
	return nil
}

// clusterState answers the only part of _cluster/state that this engine knows: the primary terms of indices.
func (c *call) clusterState() *Error {
	found, err := c.resolve(c.vars.index, expand{empty: true, lenient: true, hidden: true})
	if err != nil {
		return err
	}
	dst := appendString(append(c.out, `{"cluster_name":"`+clusterName+`","cluster_uuid":`...), c.uuid)
	dst = append(dst, `,"metadata":{"indices":{`...)
	for _, x := range found {
		dst = append(appendName(dst, x.name), `{"primary_terms":{"0":1}}`...)
	}
	c.out = append(dst, `}}}`...)
	return nil
}

// nodes answers _nodes and _nodes/http. There is only this node.
func (c *call) nodes() *Error {
	bound := c.door.addresses()
	publish := "127.0.0.1:0"
	if len(bound) > 0 {
		publish = bound[0]
	}
	host := publish[:strings.LastIndexByte(publish, ':')]
	dst := append(c.out, `{"_nodes":{"total":1,"successful":1,"failed":0},"cluster_name":"`+clusterName+`","nodes":{`...)
	dst = appendString(append(append(appendString(dst, c.uuid), ':'), `{"name":`...), c.name)
	dst = append(dst, `,"transport_address":"`+publish+`","host":"`+host+`","ip":"`+host+`","version":"`+Version+`","build_flavor":"default",`...)
	dst = append(dst, `"build_type":"in-memory","build_hash":"unknown","roles":["data","ingest","master"],"http":{"bound_address":[`...)
	for _, a := range bound {
		dst = appendString(appendComma(dst), a)
	}
	dst = appendString(append(dst, `],"publish_address":`...), publish)
	c.out = strconv.AppendInt(append(dst, `,"max_content_length_in_bytes":`...), maxBody, 10)
	c.out = append(c.out, `}}}}`...)
	return nil
}

var catColumns = []string{"health", "status", "index", "uuid", "pri", "rep", "docs.count", "docs.deleted", "store.size", "pri.store.size"}

// catIndices answers _cat/indices as text, or as JSON with format=json.
func (c *call) catIndices() *Error {
	found, err := c.found()
	if err != nil {
		return err
	}
	columns := catColumns
	if h := c.params.list("h"); len(h) > 0 {
		columns = h
	}
	var rows [][]string
	for _, x := range found {
		row := make([]string, len(columns))
		for i, name := range columns {
			row[i] = x.catCell(name)
		}
		rows = append(rows, row)
	}
	if c.params.get("format") == "json" || strings.Contains(c.req.Accept, "json") {
		c.out = append(c.out, '[')
		for _, row := range rows {
			c.out = append(appendComma(c.out), '{')
			for j, cell := range row {
				c.out = appendString(appendName(c.out, columns[j]), cell)
			}
			c.out = append(c.out, '}')
		}
		c.out = append(c.out, ']')
		return nil
	}
	c.resp.ContentType = "text/plain; charset=UTF-8"
	if c.flag("v", false) {
		rows = slices.Insert(rows, 0, columns)
	}
	c.out = appendTable(c.out, columns, rows)
	return c.bad
}

// catCell is what _cat/indices shows of an index in a column.
func (x *index) catCell(column string) string {
	switch column {
	case "health":
		if x.replicas() > 0 {
			return "yellow"
		}
		return "green"
	case "status":
		return "open"
	case "index", "i", "idx":
		return x.name
	case "uuid":
		return x.uuid
	case "pri", "p":
		return "1"
	case "rep", "r":
		return strconv.Itoa(x.replicas())
	case "docs.count", "dc", "docsCount":
		return strconv.Itoa(x.shard.count())
	case "docs.deleted":
		return "0"
	}
	return "0b"
}

// appendTable appends rows with their columns under each other, sizes and counts to the right.
func appendTable(dst []byte, columns []string, rows [][]string) []byte {
	width := make([]int, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				dst = append(dst, ' ')
			}
			switch name := columns[i]; {
			case name == "pri" || name == "rep" || strings.Contains(name, "."):
				dst = fmt.Appendf(dst, "%*s", width[i], cell)
			case i == len(row)-1:
				dst = append(dst, cell...)
			default:
				dst = fmt.Appendf(dst, "%-*s", width[i], cell)
			}
		}
		dst = append(dst, '\n')
	}
	return dst
}

// refuse makes a handler for what this engine doesn't have.
func refuse(what string) func(*call) *Error {
	return func(*call) *Error { return unsupported(what) }
}
