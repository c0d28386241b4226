"""Writes by each bulk helper of the official client, and prints what it gave back. Reads its orders as JSON."""

import json
import sys

from elasticsearch import Elasticsearch, helpers

orders = json.load(sys.stdin)
client = Elasticsearch(orders["url"], timeout=60, headers={"Optimist-Session": "bulk"} if orders["session"] else None)
index = orders["index"]


def actions(prefix):
    """New documents, and then what goes wrong: a create of what is there, a value that the mapping refuses, documents that are absent."""
    for n in range(20):
        yield {"_op_type": "index", "_index": index, "_id": f"{prefix}-{n}", "n": n, "text": "ü"}
    for n in range(4):
        yield {"_op_type": "create", "_index": index, "_id": f"there-{n}", "n": n}
    yield {"_op_type": "index", "_index": index, "_id": f"{prefix}-wrong", "n": "no number"}
    yield {"_op_type": "update", "_index": index, "_id": "there-4", "doc": {"text": prefix}}
    yield {"_op_type": "update", "_index": index, "_id": f"{prefix}-absent", "doc": {"n": 1}}
    yield {"_op_type": "delete", "_index": index, "_id": f"{prefix}-absent"}
    yield {"_op_type": "delete", "_index": index, "_id": "there-5", "if_seq_no": 1000000, "if_primary_term": 1}
    yield {"_op_type": "index", "_index": index, "_id": "there-6", "routing": "r", "n": 6}
    yield {"_op_type": "index", "_index": index, "n": 7}


def plain(item):
    """What of an item's result is the same each time."""
    ok, result = item
    (verb, told), = result.items()
    error = told.get("error", {})
    name = told["_id"] if "-" in str(told["_id"]) and len(told["_id"]) < 20 else "made"
    return [ok, verb, name, told["status"], told.get("result"), told.get("_version"), error.get("type"), told.get("data")]


def raised(call):
    try:
        return call()
    except helpers.BulkIndexError as e:
        return [e.args[0]] + sorted((plain((False, item)) for item in e.errors), key=json.dumps)


for n in range(8):
    client.index(index=index, id=f"there-{n}", body={"n": n})
if orders["session"]:  # so that there is something to guard
    client.mget(index=index, body={"ids": [f"there-{n}" for n in range(8)]})

quiet = dict(raise_on_error=False, raise_on_exception=False)
found = {
    "bulk": raised(lambda: helpers.bulk(client, actions("a"), chunk_size=1000)),
    "bulk, counted": helpers.bulk(client, actions("b"), stats_only=True, chunk_size=7, **quiet),
    "streaming": [plain(i) for i in helpers.streaming_bulk(client, actions("c"), chunk_size=5, **quiet)],
    "parallel": sorted((plain(i) for i in helpers.parallel_bulk(client, actions("d"), thread_count=4, chunk_size=9, **quiet)), key=json.dumps),
}
client.indices.refresh(index=index)
hits = client.search(index=index, size=1000, body={"query": {"match_all": {}}})["hits"]["hits"]
found["documents"] = sorted(json.dumps([h["_id"] if len(h["_id"]) < 20 else "made", h["_source"]], sort_keys=True) for h in hits)
json.dump(found, sys.stdout, ensure_ascii=False, indent=1, sort_keys=True)
