package intercept

import (
	"strings"
	"testing"
)

// TestABulkHasRoomForItsItems: no item is copied while the bulk is read, and hardly any room is left, whatever the items are.
func TestABulkHasRoomForItsItems(t *testing.T) {
	const index, remove = `{"index":{"_id":"1"}}` + "\n" + `{"a":"b"}` + "\n", `{"delete":{"_id":"1"}}` + "\n"
	for name, body := range map[string]string{
		"none":             "",
		"documents":        strings.Repeat(index, 1000),
		"deletes":          strings.Repeat(remove, 1000),
		"both":             strings.Repeat(index+remove, 500),
		"no last line end": strings.TrimSuffix(strings.Repeat(remove, 1000), "\n"),
	} {
		items := strings.Count(body, `"_id"`)
		if room := likelyItems([]byte(body)); room < items || room > items+2 {
			t.Errorf("%s: room for %d of %d items", name, room, items)
		}
	}
	if room := likelyItems([]byte(strings.Repeat(`{"index":{"delete":"delete"}}`+"\n", 10))); room > 11 {
		t.Errorf("room for %d items in 10 lines", room)
	}
}
