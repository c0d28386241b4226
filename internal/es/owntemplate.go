package es

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"
)

// templatePriority is above that of templates for everything that users have.
const templatePriority = 1_000_000

// OwnTemplate makes an index template for an index of optimist's own. settings are the body of the request that makes the index. Somebody
// may delete the index while proxies run, and the engine then creates it again with the next write. Without the template the new index
// isn't one of optimist's own: proxies that look at it later refuse it.
func OwnTemplate(index, settings string) esapi.IndicesPutIndexTemplateRequest {
	body, _ := json.Marshal(map[string]any{"index_patterns": []string{index}, "priority": templatePriority,
		"template": json.RawMessage(settings)}) // the settings are JSON
	return esapi.IndicesPutIndexTemplateRequest{Name: Segment(index), Body: bytes.NewReader(body)}
}

// LacksTemplates reports whether the answer to OwnTemplate says that there is none, and won't be: some engines have no templates, and some
// users may not make one.
func (a *Answer) LacksTemplates() bool {
	return slices.Contains([]int{400, 401, 403, 404, 405}, a.Status)
}
