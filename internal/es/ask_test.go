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

// Some gateways compress every answer, whatever the request asks for.
func TestAnAnswerMayBeCompressed(t *testing.T) {
	const found = `{"_index":"own","_id":"1","found":true}`
	compressed := enginetest.Gzip([]byte(found))
	if a, err := Ask(t.Context(), encoded(http.StatusOK, "gzip", compressed), getOwn, Way{}); string(a.Body) != found {
		t.Errorf("%q %v", a.Body, err)
	}
	for coding, body := range map[string][]byte{"gzip": compressed[:10], "br": compressed} {
		_, err := Ask(t.Context(), encoded(http.StatusOK, coding, body), esapi.DeleteRequest{Index: "own", DocumentID: "1"}, Way{})
		if !errors.Is(err, upstream.Lost) || !IsLost(err) || IsUnsent(err) {
			t.Errorf("%s: what became of the write can't be read: %v", coding, err)
		}
	}
}

func TestAnotherOptimistIsKnownThoughItsAnswerIsCompressed(t *testing.T) {
	answer := enginetest.Gzip([]byte(`{"error":{"type":"invalid_dry_run"},"status":400}`))
	if is, err := IsOptimist(t.Context(), encoded(http.StatusBadRequest, "gzip", answer), ""); !is || err != nil {
		t.Errorf("%t %v", is, err)
	}
}

// Whoever asks for several documents then asks for fewer.
func TestAnAnswerThatBecomesTooLargeIsNotLost(t *testing.T) {
	large := enginetest.Gzip([]byte(`{"docs":"` + strings.Repeat("a", 8<<20) + `"}`))
	if _, err := Ask(t.Context(), encoded(http.StatusOK, "gzip", large), getOwn, Way{}); !errors.Is(err, upstream.TooLarge) || !IsLost(err) {
		t.Error(err)
	}
}

// A gateway may have a page for each error, in a coding of its own, or name the coding of a body that isn't there.
func TestTheStatusOfAnAnswerThatCannotBeReadIsKnown(t *testing.T) {
	for coding, body := range map[string][]byte{"gzip": nil, "br": []byte("a page")} {
		for _, status := range []int{http.StatusUnauthorized, http.StatusConflict, http.StatusTooManyRequests, http.StatusBadGateway} {
			if a, err := Ask(t.Context(), encoded(status, coding, body), getOwn, Way{}); a.Status != status || len(a.Body) > 0 {
				t.Errorf("%d %s: %d %q %v", status, coding, a.Status, a.Body, err)
			}
		}
	}
}

var getOwn = esapi.GetRequest{Index: "own", DocumentID: "1"}

// encoded answers everything with that body, in that content coding.
func encoded(status int, coding string, body []byte) doerFunc {
	return func(*upstream.Request) (*upstream.Response, error) {
		return enginetest.Response(status, string(body), "Content-Encoding", coding), nil
	}
}
