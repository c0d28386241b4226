package demo

import (
	"context"
	"fmt"
	"net/http"

	"optimist/internal/demo/app"
)

// chair is the document to try things on.
const chair = `{"name":"chair","price":20,"stock":10}`

// invite puts a document there and prints what can be tried on it: two people read it, and both write it back whole.
func (s *stage) invite(ctx context.Context) error {
	doc := s.proxy + "/" + s.index + "/_doc/chair"
	whole, cancel := app.Whole(ctx)
	defer cancel()
	if _, err := send(whole, http.MethodPut, s.engine+"/"+s.index+"/_doc/chair", chair); err != nil {
		return err
	}
	fmt.Fprintf(s.out, `optimist goes on serving at %s, in front of %s. Try it:

1. Ann and Bob both read the chair. Its price is 20, and 10 are in stock:
%s
2. Ann sells one, and writes the chair back whole:
%s
3. Bob has not seen that. He sells one, too, and raises the price. Both changes are kept: the stock is 8, the price 25:
%s

Interrupt (Ctrl-C) to end.
`, s.proxy, s.engine, indent(tryRead(doc)), indent(tryWrite(doc, "ann", `{"name":"chair","price":20,"stock":9}`)),
		indent(tryWrite(doc, "bob", `{"name":"chair","price":25,"stock":9}`)+"; echo; curl -s "+doc))
	return nil
}

func tryRead(doc string) string {
	return "for who in ann bob; do curl -s -H \"Optimist-Session: $who\" " + doc + "; echo; done"
}

func tryWrite(doc, who, body string) string {
	return "curl -si -X PUT -H 'Optimist-Session: " + who + "' -H 'Content-Type: application/json' " + doc + " -d '" + body + "'"
}
