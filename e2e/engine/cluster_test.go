package engine_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"optimist/e2e/engine"
)

func TestClusterGoesOnUnderANewTermAfterItsPrimaryWasKilled(t *testing.T) {
	engine.Long(t)
	for _, k := range engine.All() {
		t.Run(k.String(), func(t *testing.T) { killPrimary(t, k) })
	}
}

func killPrimary(t *testing.T, k engine.Kind) {
	began := time.Now()
	c, err := engine.StartCluster(t.Context(), k, 3, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("three nodes up in %v", time.Since(began).Round(time.Millisecond))

	const index = "killed"
	doc := "/" + index + "/_doc/1"
	send(t, c.Nodes[0], http.StatusOK, http.MethodPut, "/"+index, `{"settings":{"number_of_shards":1,"number_of_replicas":1}}`)
	if err := c.Await(t.Context(), 0, "green", 3); err != nil {
		t.Fatal(err)
	}
	before := send(t, c.Nodes[0], http.StatusCreated, http.MethodPut, doc, `{"n":1}`)
	victim, err := c.Primary(t.Context(), 0, index)
	if err != nil {
		t.Fatal(err)
	}

	killed := time.Now()
	c.Nodes[victim].Kill()
	survivor := (victim + 1) % 3
	guard := fmt.Sprintf("?if_seq_no=%d&if_primary_term=%d&timeout=60s", before.SeqNo, before.PrimaryTerm)
	after := send(t, c.Nodes[survivor], http.StatusOK, http.MethodPut, doc+guard, `{"n":2}`)
	t.Logf("written %v after the kill", time.Since(killed).Round(time.Millisecond))
	if after.PrimaryTerm <= before.PrimaryTerm {
		t.Errorf("primary term %d after %d", after.PrimaryTerm, before.PrimaryTerm)
	}

	if err := c.Restart(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	if err := c.Await(t.Context(), victim, "green", 3); err != nil {
		t.Fatal(err)
	}
	if got := send(t, c.Nodes[victim], http.StatusOK, http.MethodGet, doc, ""); got != after {
		t.Errorf("after the restart the document has %+v, want %+v", got, after)
	}
}
