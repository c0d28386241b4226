package es

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/enginetest"
	"optimist/internal/upstream"
)

// Something between optimist and the engine may answer with a success, and send nothing on: a page that asks for a login, say.
func TestASuccessThatIsNotTheEnginesAcknowledgesNoWrite(t *testing.T) {
	for _, page := range []string{"", "<html>please log in</html>", `{"acknowledged":true}`, `{"_index":"own","_id":"1","found":true}`} {
		gateway := doerFunc(func(*upstream.Request) (*upstream.Response, error) {
			return enginetest.Response(http.StatusOK, page), nil
		})
		for name, req := range map[string]esapi.Request{
			"index":  esapi.IndexRequest{Index: "own", DocumentID: "1", Body: strings.NewReader("{}")},
			"create": esapi.CreateRequest{Index: "own", DocumentID: "1", Body: strings.NewReader("{}")},
			"update": esapi.UpdateRequest{Index: "own", DocumentID: "1", Body: strings.NewReader("{}")},
			"delete": esapi.DeleteRequest{Index: "own", DocumentID: "1"},
		} {
			if a, err := Ask(t.Context(), gateway, req, Way{}); !errors.Is(err, upstream.Lost) || !IsLost(err) || IsUnsent(err) {
				t.Errorf("%s: %s: %d %v", name, page, a.Status, err)
			}
		}
		if _, err := Ask(t.Context(), gateway, esapi.GetRequest{Index: "own", DocumentID: "1"}, Way{}); err != nil {
			t.Errorf("a read: %s: %v", page, err)
		}
	}
}
