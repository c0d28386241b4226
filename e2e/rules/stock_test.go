package rules_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// patient is a rule whose writes aren't given up while two proxies write the same document all the time.
const patient = `rules: [{name: patient, retry: {max_attempts: 1000, max_elapsed: 1m}}]`

// stockRule is that of configs/examples/stock.yaml, for any index.
const stockRule = `rules:
- name: stock
  merge: {paths: {/stock: sum}}
  transform:
  - {op: refuse, message: sold out, when: has(candidate.stock) && candidate.stock < 0}
  retry: {max_attempts: 1000, max_elapsed: 1m}
`

// TestStockIsNeverBelowZero lets 32 buyers go through two proxies for more than there is: half of them with a PATCH, half of them as an
// application does that knows nothing of it, with documents that they read and write back.
func TestStockIsNeverBelowZero(t *testing.T) {
	const buyers = 32
	initial := 200
	if long() {
		initial = 1000
	}
	eachTarget(t, func(t *testing.T, e target) {
		path := "/" + e.index(t) + "/_doc/1"
		e.send(t, http.StatusCreated, http.MethodPut, path, fmt.Sprintf(`{"stock":%d,"log":[]}`, initial))
		w := watched(t, e, path)
		proxies := [2]target{optimistFor(t, w, stockRule), optimistFor(t, w, stockRule)}
		var wg sync.WaitGroup
		bought := make([]int, buyers)
		for i := range buyers {
			c := proxies[i%2].own(t)
			buy := buyByPatch
			if i/2%2 == 1 {
				buy = buyByDocument
			}
			wg.Go(func() {
				for buy(t, c, path, fmt.Sprintf("buyer-%d-%d", i, bought[i])) {
					bought[i]++
				}
			})
		}
		wg.Wait()
		sold, idle := 0, 0
		for _, n := range bought {
			sold += n
			if n == 0 {
				idle++
			}
		}
		doc := gjson.Parse(e.stored(t, path).source)
		if left := doc.Get("stock").Int(); left != int64(initial-sold) || left != 0 {
			t.Errorf("%d of %d were sold, and there are %d", sold, initial, left)
		}
		if n := len(doc.Get("log").Array()); n != sold {
			t.Errorf("%d were sold, and the document tells of %d", sold, n)
		}
		t.Logf("%d sold; %d of %d buyers got none", sold, idle, buyers)
	})
}

// watched fails the test when the stock in a document that is written, or read, is below zero: no revision is missed.
func watched(t *testing.T, e target, path string) target {
	t.Helper()
	return between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if isWrite(r, path) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			if s := gjson.GetBytes(b, "stock"); s.Int() < 0 || s.Type != gjson.Number {
				t.Errorf("written: %s", b)
			}
			r.Body = io.NopCloser(bytes.NewReader(b))
		}
		pass.ServeHTTP(w, r)
	})
}

// buyByPatch buys one; name stands for the purchase. It returns false when there is none left.
func buyByPatch(t *testing.T, c target, path, name string) bool {
	t.Helper()
	a := c.try(t, http.MethodPatch, path+"?_source=true",
		`[{"op":"increment","path":"/stock","value":-1},{"op":"append","path":"/log","value":"`+name+`"}]`, "Content-Type", operations)
	if a.status == http.StatusOK && a.get("get._source.stock").Int() < 0 {
		t.Errorf("shown: %s", a.body)
	}
	return wasBought(t, a)
}

// buyByDocument buys one as an application does that reads the document, changes it and writes it back.
func buyByDocument(t *testing.T, c target, path, name string) bool {
	t.Helper()
	session := []string{"Optimist-Session", name}
	doc := c.send(t, http.StatusOK, http.MethodGet, path, "", session...).get("_source")
	stock := doc.Get("stock").Int()
	if stock < 0 {
		t.Errorf("read: %s", doc.Raw)
	}
	if stock <= 0 {
		return false
	}
	log := strings.TrimSuffix(doc.Get("log").Raw, "]")
	if log != "[" {
		log += ","
	}
	body := fmt.Sprintf(`{"stock":%d,"log":%s"%s"]}`, stock-1, log, name)
	return wasBought(t, c.try(t, http.MethodPut, path, body, session...))
}

// wasBought reports whether a purchase was acknowledged. Whatever else is answered must be that the stock is not enough.
func wasBought(t *testing.T, a answer) bool {
	t.Helper()
	if a.status == http.StatusOK {
		return true
	}
	refused(t, a, http.StatusConflict, "version_conflict_engine_exception", `transform[0]: sold out`)
	return false
}
