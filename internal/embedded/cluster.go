package embedded

// tagline is what GET / says instead of the engine's: nobody may take this for a database.
const tagline = "You know, for trying: in memory only, all data is lost when optimist ends"

func (c *call) root() *Error {
	dst := append(c.out, '{')
	dst = appendString(append(dst, `"name":`...), c.name)
	dst = appendString(append(dst, `,"cluster_name":"optimist-embedded","cluster_uuid":`...), c.uuid)
	dst = append(dst, `,"version":{"distribution":"optimist-embedded","number":"`+Version+`","build_flavor":"default","build_type":"in-memory"`...)
	dst = append(dst, `,"build_hash":"unknown","build_date":"2026-01-01T00:00:00.000Z","build_snapshot":false,"lucene_version":"none"`...)
	dst = append(dst, `,"minimum_wire_compatibility_version":"8.19.0","minimum_index_compatibility_version":"8.0.0"},"tagline":`...)
	c.out = append(appendString(dst, tagline), '}')
	return nil
}
